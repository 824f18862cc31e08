//! Encrypted messages: who reads them, and what happens to those that cannot be sealed or opened.

use std::time::Duration;

use stc_client::{
    Category, Checkpoint, ConsumerCryptoFailure, ConsumerEncryption, PrivateKeyProvider,
    ProducerCryptoFailure, ProducerEncryption, PulsarClient, QueueConsumer, StaticKeys, StringSchema,
};

use crate::support::{Bench, TOPIC, soon};

fn keys() -> StaticKeys {
    StaticKeys::new()
        .public("rsa", include_bytes!("../../../features/keys/rsa-public.pem").as_slice())
        .private("rsa", include_bytes!("../../../features/keys/rsa-private.pem").as_slice())
        .public("ec", include_bytes!("../../../features/keys/p521-public.pem").as_slice())
        .private("ec", include_bytes!("../../../features/keys/p521-private.pem").as_slice())
}

fn only_public() -> StaticKeys {
    StaticKeys::new().public("rsa", include_bytes!("../../../features/keys/rsa-public.pem").as_slice())
}

async fn send(client: &PulsarClient, names: &[&str], values: &[&str]) {
    let encryption = ProducerEncryption::new(keys(), names.iter().copied());
    let producer = client.producer(StringSchema).topic(TOPIC).encryption(encryption).create().await.unwrap();
    for value in values {
        producer.message().key("k").value((*value).to_owned()).send_async();
    }
    producer.close().await.unwrap();
}

async fn queue(
    client: &PulsarClient,
    keys: impl PrivateKeyProvider + 'static,
    on_failure: ConsumerCryptoFailure,
) -> QueueConsumer<String> {
    let encryption = ConsumerEncryption::new(keys).on_failure(on_failure);
    let builder = client.queue_consumer(StringSchema).topic(TOPIC).subscription("s");
    builder
        .encryption(encryption)
        .initial_position(stc_client::InitialPosition::Earliest)
        .subscribe()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_consumer_reads_what_was_encrypted_and_the_broker_does_not() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    for names in [vec!["rsa"], vec!["ec"], vec!["ec", "rsa"]] {
        send(&client, &names, &["secret", "another"]).await;
    }
    let stored = bench.control.stored(TOPIC).unwrap();
    assert_eq!(stored.len(), 6, "each message is an entry of its own");
    for view in stored {
        let entry = stc_proto::Entry::parse(view.bytes).unwrap();
        assert!(!entry.payload.windows(6).any(|window| window == b"secret"));
        assert_eq!(entry.metadata.partition_key(), "k", "the broker still routes by the key");
        assert!(entry.metadata.entry_hash_min.is_some(), "and by the stamp");
    }
    let expected = ["secret", "another"].repeat(3);
    let stream = client.stream_consumer(StringSchema).topic(TOPIC).subscription("t");
    let stream = stream
        .encryption(ConsumerEncryption::new(keys()))
        .initial_position(stc_client::InitialPosition::Earliest)
        .subscribe()
        .await
        .unwrap();
    let reader = client.checkpoint_consumer(StringSchema).topic(TOPIC).start(Checkpoint::earliest());
    let reader = reader.encryption(ConsumerEncryption::new(keys())).create().await.unwrap();
    let queue = queue(&client, keys(), ConsumerCryptoFailure::Fail).await;
    for value in expected {
        assert_eq!(soon(stream.receive()).await.unwrap().value().unwrap(), value);
        assert_eq!(soon(reader.receive()).await.unwrap().value().unwrap(), value);
        assert_eq!(soon(queue.receive()).await.unwrap().value().unwrap(), value);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decrypted_fails_the_receive_and_comes_again() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    send(&client, &["rsa"], &["one"]).await;
    let producer = client.producer(StringSchema).topic(TOPIC).create().await.unwrap();
    producer.message().value("clear".into()).send().await.unwrap();
    send(&client, &["rsa"], &["two"]).await;

    let blind = client.queue_consumer(StringSchema).topic(TOPIC).subscription("s");
    let blind = blind.initial_position(stc_client::InitialPosition::Earliest).subscribe().await.unwrap();
    // Neither takes what can be read with it.
    let failed = soon(blind.receive_multi(10, Duration::from_secs(1))).await;
    assert_eq!(failed.unwrap_err().category(), Category::Crypto);
    let read = soon(blind.receive_multi(10, Duration::from_secs(1))).await.unwrap();
    assert_eq!(read.iter().map(|message| message.value().unwrap()).collect::<Vec<_>>(), ["clear"]);
    assert_eq!(soon(blind.receive()).await.unwrap_err().category(), Category::Crypto);
    blind.acknowledge(read[0].id()).await.unwrap();
    blind.close().await.unwrap();

    let sighted = queue(&client, keys(), ConsumerCryptoFailure::Fail).await;
    for value in ["one", "two"] {
        assert_eq!(soon(sighted.receive()).await.unwrap().value().unwrap(), value);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decrypted_is_discarded_where_the_consumer_says_so() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    send(&client, &["rsa"], &["one"]).await;
    let blind = queue(&client, only_public(), ConsumerCryptoFailure::Discard).await;
    assert!(blind.receive_timeout(Duration::from_secs(5)).await.unwrap().is_none());
    let acks = bench.frames("ACK");
    assert_eq!(acks.len(), 1);
    assert_eq!(acks[0]["validation_error"], "DecryptionError");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decrypted_is_delivered_sealed_where_the_consumer_says_so() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    send(&client, &["rsa"], &["one"]).await;
    let blind = queue(&client, only_public(), ConsumerCryptoFailure::Consume).await;
    let message = soon(blind.receive()).await.unwrap();
    let context = message.encryption().unwrap();
    assert_eq!((context.keys[0].name.as_str(), context.nonce.len()), ("rsa", 12));
    assert_eq!(message.payload().len(), 3 + 16);
    assert_eq!(message.key(), Some("k"));
    let sighted = client.queue_consumer(StringSchema).topic(TOPIC).subscription("t");
    let sighted = sighted.encryption(ConsumerEncryption::new(keys()));
    let sighted = sighted.initial_position(stc_client::InitialPosition::Earliest).subscribe().await.unwrap();
    assert!(soon(sighted.receive()).await.unwrap().encryption().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_producer_without_its_key_fails_or_sends_in_the_clear() {
    let bench = Bench::new();
    bench.create(1);
    let client = bench.client();
    let missing = || ProducerEncryption::new(keys(), ["missing"]);
    let producer = client.producer(StringSchema).topic(TOPIC).encryption(missing()).create().await;
    assert_eq!(producer.map(drop).unwrap_err().category(), Category::Crypto);
    let lax = missing().on_failure(ProducerCryptoFailure::SendUnencrypted);
    let producer = client.producer(StringSchema).topic(TOPIC).encryption(lax).create().await.unwrap();
    producer.message().value("clear".into()).send().await.unwrap();
    assert_eq!(bench.stored(TOPIC)[0].2, "clear");
}
