#!/bin/sh
# What a container of the real broker runs. The image holds a Java runtime, the jars and this shell and no other
# program, so only what the shell does by itself is used here.
#
#   ROLE         standalone (default), or for a cluster: meta (ZooKeeper and one bookie), init (waits for the bookie and
#                writes the cluster's metadata, then ends), broker (joins what `meta` holds). The containers of a cluster
#                share the network of `meta`.
#   PORT, WEB    ports for clients and for the admin REST. They are handed out to clients as they are: publish them under
#                the same numbers
#   ADVERTISED   the address that is handed out
#   HEAP, DIRECT memory of the JVM
#   JAVA_OPTS    more options of the JVM
#   arguments    key=value lines for the broker's configuration, which win over what is there
set -euf

metadata=zk:127.0.0.1:2181
web_url=http://$ADVERTISED:$WEB service_url=pulsar://$ADVERTISED:$PORT

run() {
  # shellcheck disable=SC2086  # several options in one variable
  exec java @/pulsar/jvm.options "-Xmx$HEAP" "-XX:MaxDirectMemorySize=$DIRECT" $JAVA_OPTS \
    -Dlog4j.configurationFile=/pulsar/log4j2.xml -cp '/pulsar/lib/*' "$@"
}

# Of a key that is written twice, Java's properties take the last one.
configure() {
  while read -r line; do printf '%s\n' "$line"; done </pulsar/broker.conf
  printf '%s\n' bindAddress=0.0.0.0 "advertisedAddress=$ADVERTISED" "brokerServicePort=$PORT" "webServicePort=$WEB"
  if [ "$ROLE" = broker ]; then
    printf '%s\n' "metadataStoreUrl=$metadata" "configurationMetadataStoreUrl=$metadata" loadBalancerEnabled=true
  fi
  [ $# -eq 0 ] || printf '%s\n' "$@"
}

# The names of the bookies that have registered, the last thing that a bookie does. The one of `meta` is bk0test.
bookies() {
  java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j.configurationFile=/pulsar/log4j2.xml \
    -Dstc.log.level=ERROR -cp '/pulsar/lib/*' org.apache.zookeeper.ZooKeeperMain -server 127.0.0.1:2181 \
    ls /ledgers/available 2>/dev/null || :
}

configure "$@" >/tmp/broker.conf
case $ROLE in
  standalone)
    run org.apache.pulsar.PulsarStandaloneStarter --config /tmp/broker.conf --metadata-dir /tmp/data/metadata \
      --bookkeeper-dir /tmp/data/bookkeeper --no-functions-worker --no-stream-storage \
      --advertised-address "$ADVERTISED"
    ;;
  meta)
    export PULSAR_STANDALONE_USE_ZOOKEEPER=1
    run org.apache.pulsar.PulsarStandaloneStarter --config /tmp/broker.conf --no-broker \
      --zookeeper-dir /tmp/data/zookeeper --bookkeeper-dir /tmp/data/bookkeeper --no-functions-worker --no-stream-storage
    ;;
  init)
    # Each try starts a JVM, which takes a second.
    tries=0
    until case $(bookies) in *bk0*) true ;; *) false ;; esac do
      tries=$((tries + 1))
      [ $tries -lt 60 ] || { echo "no bookie registered" >&2; exit 1; }
    done
    run org.apache.pulsar.PulsarClusterMetadataSetup --cluster standalone --metadata-store $metadata \
      --configuration-metadata-store $metadata --web-service-url "$web_url" --broker-service-url "$service_url" \
      --default-namespace-bundle-number 4
    ;;
  broker) run org.apache.pulsar.PulsarBrokerStarter --broker-conf /tmp/broker.conf ;;
  *)
    echo "ROLE is standalone, meta, init or broker, not $ROLE" >&2
    exit 2
    ;;
esac
