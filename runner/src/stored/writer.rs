//! Stores what no client under test publishes, such as what a replicator of another cluster would.

use bytes::Bytes;
use sim_broker::SimCluster;
use stc_proto::pulsar::{CommandProducer, CommandSend, MessageMetadata};
use stc_proto::{Command, Entry, Frame, Layout};

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
    let name = topic.trim_start_matches("topic://");
    let (start, end) = (segment.range.start(), segment.range.end());
    let name = format!("segment://{name}/{start:04x}-{end:04x}-{}", segment.id);
    let mut link = Link::over(Box::new(cluster.connect(&broker.broker_url)?), None).await?;
    let request_id = link.request_id();
    let producer = CommandProducer { topic: name, producer_id: 1, request_id, ..Default::default() };
    link.send(Command::from(producer)).await?;
    match link.next().await?.command {
        Command::ProducerSuccess(_) => {}
        other => return Err(unexpected("PRODUCER", &other)),
    }
    let send = CommandSend { producer_id: 1, sequence_id: metadata.sequence_id, ..Default::default() };
    link.send(Frame::with_payload(send, Entry::new(metadata, payload).to_bytes())).await?;
    match link.next().await?.command {
        Command::SendReceipt(_) => Ok(()),
        other => Err(unexpected("SEND", &other)),
    }
}
