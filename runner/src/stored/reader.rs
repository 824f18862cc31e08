//! What a broker elsewhere has stored, read over the wire.
//!
//! The admin REST says which topics there are: the segments of a scalable topic, the partitions of a classic one. Each
//! is then read from its first entry to its last by a non-durable subscription of the suite's own, which leaves
//! nothing behind. This is no client under test and shares no code with the reference client: it speaks `stc_proto`.

use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use stc_proto::name::Domain;
use stc_proto::pulsar::command_subscribe::{InitialPosition, SubType};
use stc_proto::pulsar::{
    CommandCloseConsumer, CommandFlow, CommandGetLastMessageId, CommandSubscribe, MessageIdData,
};
use stc_proto::{Command, Entry, Frame, SegmentName, TopicName};

use super::brokers::Brokers;
use super::classic::partitions;
use super::link::{Link, unexpected};
use super::{StoredMessage, messages, sorted};
use crate::judge::Trouble;
use crate::target::admin::Admin;
use crate::target::layout;
use crate::wire;

/// How long all of it may take. Longer than any broker needs, and shorter than a step may take, so that a broker which
/// keeps something back is told as what it is and not as a client that hangs.
const LIMIT: Duration = Duration::from_secs(45);

/// How many messages a topic may send before it is asked for more.
const PERMITS: u32 = 10_000;

/// Everything stored under a topic of the broker at these places, in the order of [`super::of`], with what comes `late`
/// ([`super::with_late`]).
///
/// # Errors
/// When the topic does not exist, the broker cannot be read from, or an entry does not parse.
pub async fn read(
    service_url: &str,
    admin: &Admin,
    topic: &str,
    late: Duration,
) -> Result<Vec<StoredMessage>, Trouble> {
    let mut reader = Reader { brokers: Brokers::elsewhere(service_url)?, consumers: 0 };
    let mut at = String::from("the admin REST");
    let work = async {
        let mut found = Vec::new();
        for name in topics(admin, &TopicName::parse(topic)?).await? {
            at = name.to_string();
            for (position, bytes) in reader.entries(&name, late).await? {
                found.extend(messages(name.as_str(), position, bytes)?);
            }
        }
        Ok(sorted(found))
    };
    let read = tokio::time::timeout(LIMIT, work).await;
    read.unwrap_or_else(|_| Err(Trouble(format!("reading what {at} stores does not end"))))
}

/// The topics that store what is sent to `name`, in the order of their segment ids or partition numbers.
async fn topics(admin: &Admin, name: &TopicName) -> Result<Vec<TopicName>, Trouble> {
    let scalable = format!("/admin/v2/scalable/{}/{}", name.namespace(), name.local());
    let answer = admin.call(Method::GET, &scalable, None).await?;
    match answer.status {
        200 => {
            let layout = layout::parse(&answer.body).map_err(|e| Trouble(format!("GET {scalable}: {e}")))?;
            let parent = name.with_domain(Domain::Topic);
            let topic = |segment: &stc_proto::Segment| match &segment.legacy_topic {
                Some(legacy) => TopicName::parse(legacy),
                None => Ok(SegmentName::new(parent.clone(), segment.range, segment.id)?.to_topic_name()),
            };
            Ok(layout.segments().map(topic).collect::<Result<_, _>>()?)
        }
        404 if name.domain() == Domain::Persistent => partitions(admin, name).await,
        status => Err(Trouble(format!("GET {scalable}: {status} {}", answer.body))),
    }
}

/// Ledger and entry.
type Position = (u64, u64);

struct Reader {
    brokers: Brokers,
    /// Consumer ids that are used up.
    consumers: u64,
}

impl Reader {
    /// All entries of one topic, in stored order, with those that come `late` after the last.
    async fn entries(
        &mut self,
        topic: &TopicName,
        late: Duration,
    ) -> Result<Vec<(Position, Bytes)>, Trouble> {
        self.consumers += 1;
        let consumer_id = self.consumers;
        let link = self.brokers.serving(topic).await?;
        let request_id = link.request_id();
        let earliest = MessageIdData { ledger_id: u64::MAX, entry_id: u64::MAX, ..MessageIdData::default() };
        let subscribe = CommandSubscribe {
            topic: topic.to_string(),
            subscription: format!("stc-stored-{consumer_id}"),
            sub_type: SubType::Exclusive.into(),
            consumer_id,
            request_id,
            durable: Some(false),
            start_message_id: Some(earliest),
            initial_position: Some(InitialPosition::Earliest.into()),
            force_topic_creation: Some(false),
            ..CommandSubscribe::default()
        };
        link.send(subscribe).await?;
        match link.answer().await? {
            Command::Success(_) => {}
            other => return Err(unexpected("SUBSCRIBE", &other)),
        }
        let mut entries = match last(link, consumer_id).await? {
            Some(last) => until(link, consumer_id, last).await?,
            None => {
                link.send(CommandFlow { consumer_id, message_permits: PERMITS }).await?;
                Vec::new()
            }
        };
        let collect = async {
            loop {
                entries.extend(message(link.next().await?, consumer_id)?);
            }
        };
        if let Ok(broken) = tokio::time::timeout(late, collect).await {
            return broken;
        }
        let request_id = link.request_id();
        let close = CommandCloseConsumer { consumer_id, request_id, ..CommandCloseConsumer::default() };
        link.send(close).await?;
        // What comes until the close is answered is stored as well.
        loop {
            let frame = link.next().await?;
            if matches!(&frame.command, Command::Success(success) if success.request_id == request_id) {
                return Ok(entries);
            }
            entries.extend(message(frame, consumer_id)?);
        }
    }
}

/// What a MESSAGE for the consumer brings; nothing for another frame, also one for an earlier consumer, of another topic.
fn message(frame: Frame, consumer_id: u64) -> Result<Option<(Position, Bytes)>, Trouble> {
    match frame.command {
        Command::Message(message) if message.consumer_id == consumer_id => {
            let bytes = frame.payload.ok_or_else(|| Trouble::new("a MESSAGE without an entry"))?;
            Ok(Some(((message.message_id.ledger_id, message.message_id.entry_id), bytes)))
        }
        _ => Ok(None),
    }
}

/// The position of the last entry; `None` when there is none.
async fn last(link: &mut Link, consumer_id: u64) -> Result<Option<Position>, Trouble> {
    let request_id = link.request_id();
    link.send(CommandGetLastMessageId { consumer_id, request_id }).await?;
    match link.answer().await? {
        Command::GetLastMessageIdResponse(answer) => {
            let id = answer.last_message_id;
            // The position before the first entry is entry -1.
            Ok((id.entry_id != u64::MAX).then_some((id.ledger_id, id.entry_id)))
        }
        other => Err(unexpected("GET_LAST_MESSAGE_ID", &other)),
    }
}

/// The entries up to and with the one at `last`.
async fn until(link: &mut Link, consumer_id: u64, last: Position) -> Result<Vec<(Position, Bytes)>, Trouble> {
    let mut entries = Vec::new();
    link.send(CommandFlow { consumer_id, message_permits: PERMITS }).await?;
    loop {
        let frame = link.next().await?;
        match &frame.command {
            Command::Message(_) | Command::ActiveConsumerChange(_) | Command::ReachedEndOfTopic(_) => {}
            other => return Err(unexpected("FLOW", other)),
        }
        let Some((position, bytes)) = message(frame, consumer_id)? else { continue };
        // An entry costs a permit for each of its messages.
        let spent = wire::messages(&Entry::parse(bytes.clone())?).len();
        let message_permits = u32::try_from(spent)?;
        entries.push((position, bytes));
        if position >= last {
            return Ok(entries);
        }
        link.send(CommandFlow { consumer_id, message_permits }).await?;
    }
}
