//! Stores what no client under test publishes, such as what a replicator of another cluster would.

use bytes::Bytes;
use sim_broker::SimCluster;
use stc_proto::pulsar::MessageMetadata;
use stc_proto::{Layout, SegmentName, TopicName};

use super::link::{Link, unexpected};
use crate::judge::Trouble;

/// Publishes a message with this metadata to the first active segment of a scalable topic of a simulated cluster.
///
/// # Errors
/// When the topic is not there, or a broker does not do as asked.
pub async fn publish(
    cluster: &SimCluster,
    topic: &str,
    metadata: MessageMetadata,
    payload: Bytes,
) -> Result<(), Trouble> {
    let dag = cluster.control().current_dag(topic)?;
    let layout = Layout::from_dag(&dag)?;
    let segment = layout.active().next().ok_or_else(|| Trouble::new("the topic has no active segment"))?;
    let broker = dag.segment_brokers.iter().find(|b| b.segment_id == segment.id);
    let broker = broker.ok_or_else(|| Trouble::new("the layout names no broker for the segment"))?;
    let name = SegmentName::new(TopicName::parse(topic)?, segment.range, segment.id)?.to_topic_name();
    let mut link = Link::over(Box::new(cluster.connect(&broker.broker_url)?), None).await?;
    let opened = link.open_producer(name.to_string(), 1).await?;
    opened.map_err(|error| unexpected("PRODUCER", &error.into()))?;
    link.publish(1, metadata, payload).await
}
