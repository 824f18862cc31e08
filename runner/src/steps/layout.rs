//! Steps about layout pushes: held back, told again, or forged.

use cucumber::when;
use stc_proto::pulsar::ScalableTopicDag;

use super::params::{Hash, Topic};
use crate::judge::{Step, Trouble};
use crate::world::{THE, World};

/// The brokers keep layout pushes back until they are released.
#[when(expr = "layout pushes of {topic} are held")]
async fn hold(world: &mut World, topic: Topic) -> Step {
    let name = world.topic(&topic.0)?;
    world.control().await?.hold_pushes(&name)?;
    Ok(())
}

/// The held layout pushes go out.
#[when(expr = "layout pushes of {topic} are released")]
async fn release(world: &mut World, topic: Topic) -> Step {
    let name = world.topic(&topic.0)?;
    world.control().await?.release_pushes(&name)?;
    Ok(())
}

/// A layout that clients have seen before comes again, as its epoch was then.
#[when(expr = "the layout of epoch {int} of {topic} is pushed again")]
async fn push_again(world: &mut World, epoch: u64, topic: Topic) -> Step {
    let dag = seen(world, &topic.0, Some(epoch))?;
    push(world, &topic.0, dag).await
}

/// The newest layout comes again with one of its segments listed twice.
#[when(expr = "the layout of {topic} is pushed with segment {int} listed twice")]
async fn push_twice(world: &mut World, topic: Topic, segment: u64) -> Step {
    let mut dag = seen(world, &topic.0, None)?;
    let listed = dag.segments.iter().find(|s| s.segment_id == segment).cloned();
    let listed = listed.ok_or_else(|| Trouble(format!("the layout has no segment {segment}")))?;
    dag.segments.push(listed);
    dag.epoch += 1;
    push(world, &topic.0, dag).await
}

/// The newest layout comes, one epoch later, without one of its segments.
#[when(expr = "a layout of {topic} without segment {int} is pushed")]
async fn push_without(world: &mut World, topic: Topic, segment: u64) -> Step {
    let mut dag = seen(world, &topic.0, None)?;
    dag.segments.retain(|s| s.segment_id != segment);
    dag.segment_brokers.retain(|b| b.segment_id != segment);
    dag.epoch += 1;
    push(world, &topic.0, dag).await
}

/// The topic's layout comes with other entry buckets of a segment: those that start at these hashes.
#[when(
    regex = r"^a layout of the topic is pushed with buckets of segment (\d+) that start at ((?:0x[0-9a-f]{4} ?)+)$"
)]
async fn push_buckets(world: &mut World, segment: u64, starts: String) -> Step {
    let name = world.topic(THE)?;
    let mut dag = world.control().await?.current_dag(&name)?;
    let listed = dag.segments.iter_mut().find(|s| s.segment_id == segment);
    let listed = listed.ok_or_else(|| Trouble(format!("the layout has no segment {segment}")))?;
    // On the wire the first bucket's start is left out: it is always 0.
    listed.entry_bucket_splits = bucket_starts(&starts)?.into_iter().skip(1).map(u32::from).collect();
    push(world, THE, dag).await
}

/// The hashes of a list such as `0x0000 0x1000`.
pub(crate) fn bucket_starts(text: &str) -> Result<Vec<u16>, Trouble> {
    text.split_whitespace().map(|t| Ok(t.parse::<Hash>()?.0)).collect()
}

/// The newest layout comes once more, unchanged.
#[when(expr = "the newest layout of {topic} is pushed again")]
async fn push_newest(world: &mut World, topic: Topic) -> Step {
    let dag = seen(world, &topic.0, None)?;
    push(world, &topic.0, dag).await
}

async fn push(world: &mut World, topic: &str, dag: ScalableTopicDag) -> Step {
    let name = world.topic(topic)?;
    world.control().await?.push_layout(&name, &dag)?;
    world.settle().await;
    Ok(())
}

/// The newest layout that was pushed to any watch of the topic, or the newest of one epoch.
fn seen(world: &World, topic: &str, epoch: Option<u64>) -> Result<ScalableTopicDag, Trouble> {
    let name = world.topic(topic)?;
    let watches = world.wire()?.watches();
    watches
        .iter()
        .filter(|w| w.command.topic == name)
        .flat_map(|w| &w.layouts)
        .filter(|(_, dag)| epoch.is_none_or(|e| dag.epoch == e))
        .max_by_key(|(n, _)| *n)
        .map(|(_, dag)| dag.clone())
        .ok_or_else(|| Trouble::new("no such layout was pushed yet"))
}
