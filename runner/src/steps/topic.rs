//! Steps that make topics and change their segments through the admin REST.

use std::time::Duration;

use axum::http::Method;
use cucumber::{given, then, when};
use serde_json::json;
use sim_broker::core::journal::Direction;
use stc_proto::Command;

use super::params::Topic;
use crate::judge::{Step, Trouble};
use crate::target::Broker;
use crate::world::{THE, World};

/// A scalable topic in `public/default`.
#[given(expr = "a scalable topic with {int} segment(s)")]
async fn scalable(world: &mut World, segments: u32) -> Step {
    make_scalable(world, THE, segments).await
}

/// A second scalable topic.
#[given(expr = "a scalable topic {string} with {int} segment(s)")]
async fn named_scalable(world: &mut World, alias: String, segments: u32) -> Step {
    make_scalable(world, &alias, segments).await
}

async fn make_scalable(world: &mut World, alias: &str, segments: u32) -> Step {
    let name = format!("topic://public/default/{}", world.fresh_name(alias));
    world.topics.insert(alias.to_owned(), name);
    create(world, alias, segments).await
}

async fn create(world: &mut World, alias: &str, segments: u32) -> Step {
    let path = format!("{}?numInitialSegments={segments}", world.scalable_path(alias)?);
    world.admin(Method::PUT, &path, Some(json!({}))).await?;
    Ok(())
}

/// Splits the topic so that its epoch is above that of a new one; with 0 it stays as it is.
#[given(expr = "{topic} was split {int} time(s)")]
async fn was_split(world: &mut World, topic: Topic, times: usize) -> Step {
    for _ in 0..times {
        let last = world.layout(&topic.0).await?.active().map(|s| s.id).max();
        let last = last.ok_or_else(|| Trouble::new("no segment is active"))?;
        let path = format!("{}/split/{last}", world.scalable_path(&topic.0)?);
        world.admin(Method::POST, &path, None).await?;
    }
    world.settle().await;
    Ok(())
}

/// Deletes a scalable topic under those who use it.
#[when(expr = "{topic} is deleted")]
async fn deleted(world: &mut World, topic: Topic) -> Step {
    let path = format!("{}?force=true", world.scalable_path(&topic.0)?);
    world.admin(Method::DELETE, &path, None).await?;
    world.settle().await;
    if !world.virtual_time() {
        turned_away(world).await;
    }
    Ok(())
}

/// Waits until whoever was closed has tried again and was refused, so that what comes next does not race with that. A
/// client need not try again, so it is a wait and no judgement.
async fn turned_away(world: &World) {
    for _ in 0..100 {
        let records = world.started_broker().and_then(Broker::journal).unwrap_or_default();
        let told = |is_it: fn(&Command) -> bool| {
            let frames = records.iter().filter(|r| r.direction == Direction::ToClient);
            frames.filter_map(|r| r.frame()).filter(|f| is_it(&f.command)).count()
        };
        let closed = told(|c| matches!(c, Command::CloseProducer(_) | Command::CloseConsumer(_)));
        if told(|c| matches!(c, Command::Error(_))) >= closed {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The name gets its topic, or one that was deleted gets another, at epoch 0.
#[when(expr = "{topic} is created (again )with {int} segment(s)")]
async fn created(world: &mut World, topic: Topic, segments: u32) -> Step {
    create(world, &topic.0, segments).await
}

/// A name that nothing has been made under, in a namespace whose policy permits or forbids auto-creation.
#[given(
    regex = r#"^the name of an absent (topic|topic "[^"]+"), in a namespace that (permits|forbids) auto-creation$"#
)]
async fn absent(world: &mut World, topic: Topic, policy: String) -> Step {
    let local = world.fresh_name(&topic.0);
    let namespace = format!("public/ns-{local}");
    world.admin(Method::PUT, &format!("/admin/v2/namespaces/{namespace}"), Some(json!({}))).await?;
    let body = json!({ "allowAutoTopicCreation": policy == "permits", "topicType": "non-partitioned" });
    let path = format!("/admin/v2/namespaces/{namespace}/autoTopicCreation");
    world.admin(Method::POST, &path, Some(body)).await?;
    world.topics.insert(topic.0, format!("topic://{namespace}/{local}"));
    Ok(())
}

/// Splits a segment at the middle of its range.
#[when(expr = "segment {int} of {topic} is split")]
async fn split(world: &mut World, segment: u64, topic: Topic) -> Step {
    change(world, &topic.0, &format!("split/{segment}")).await
}

/// Merges two adjacent segments.
#[when(expr = "segments {int} and {int} of {topic} are merged")]
async fn merge(world: &mut World, first: u64, second: u64, topic: Topic) -> Step {
    change(world, &topic.0, &format!("merge/{first}/{second}")).await
}

/// Replaces a segment by one of the same range with other entry buckets.
#[when(expr = "segment {int} of {topic} is rebucketed into {int} bucket(s)")]
async fn rebucket(world: &mut World, segment: u64, topic: Topic, buckets: u32) -> Step {
    change(world, &topic.0, &format!("rebucket/{segment}?bucketCount={buckets}")).await
}

async fn change(world: &mut World, topic: &str, call: &str) -> Step {
    let path = world.scalable_path(topic)?;
    world.admin(Method::POST, &format!("{path}/{call}"), None).await?;
    Ok(())
}

/// The controller prunes the sealed segments that every subscription has read, now instead of at its next look.
#[when(expr = "the drained segments of {topic} are pruned")]
async fn prune(world: &mut World, topic: Topic) -> Step {
    world.settle().await;
    let name = world.topic(&topic.0)?;
    if world.control().await?.prune(&name)? == 0 {
        return Err(Trouble::new("no segment is drained, so none was pruned"));
    }
    world.settle().await;
    Ok(())
}

/// The admin REST shows this many active segments: the change that the scenario is about did happen.
#[then(expr = "{topic} has {int} active segment(s)")]
async fn active_segments(world: &mut World, topic: Topic, count: usize) -> Step {
    let active = world.layout(&topic.0).await?.active().count();
    if active == count {
        Ok(())
    } else {
        Err(Trouble(format!("the topic has {active} active segments, the scenario is about {count}")))
    }
}

/// The topic now exists, made by the client's operation.
#[then(expr = "{topic} exists")]
async fn exists(world: &mut World, topic: Topic) -> Step {
    let path = world.scalable_path(&topic.0)?;
    let answer = world.broker().await.admin.call(Method::GET, &path, None).await?;
    world.judge(&["API-7.2", "API-7.1"], answer.status == 200, || {
        format!("the topic was not created: the broker answers {} for it", answer.status)
    });
    Ok(())
}

/// The topic was not made by anything.
#[then(expr = "{topic} does not exist")]
async fn does_not_exist(world: &mut World, topic: Topic) -> Step {
    let path = world.scalable_path(&topic.0)?;
    let answer = world.broker().await.admin.call(Method::GET, &path, None).await?;
    world.judge(&["API-7.3", "API-7.4", "API-4.4.5"], answer.status == 404, || {
        format!("the topic must not exist, and the broker answers {} for it", answer.status)
    });
    Ok(())
}
