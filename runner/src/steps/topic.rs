//! Steps that make topics and change their segments through the admin REST.

use axum::http::Method;
use cucumber::{given, then, when};
use serde_json::json;
use stc_proto::TopicName;
use stc_proto::name::Domain;

use super::params::Topic;
use crate::judge::{Step, Trouble};
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
    Ok(())
}

/// Another topic of the same name, at epoch 0.
#[when(expr = "{topic} is created again with {int} segment(s)")]
async fn created_again(world: &mut World, topic: Topic, segments: u32) -> Step {
    let path = format!("{}?numInitialSegments={segments}", world.scalable_path(&topic.0)?);
    world.admin(Method::PUT, &path, Some(json!({}))).await?;
    Ok(())
}

/// A classic topic of this many partitions, addressed by its `persistent://` name.
#[given(expr = "a classic topic with {int} partition(s)")]
async fn partitioned(world: &mut World, partitions: u32) -> Step {
    let path = classic(world);
    world.admin(Method::PUT, &format!("{path}/partitions"), Some(json!(partitions))).await?;
    Ok(())
}

/// A classic topic without partitions, addressed by its `persistent://` name.
#[given("a classic topic without partitions")]
async fn unpartitioned(world: &mut World) -> Step {
    let path = classic(world);
    world.admin(Method::PUT, &path, None).await?;
    Ok(())
}

/// From here on the application writes the topic without its tenant, namespace and domain.
#[given("the topic is called by its short name")]
fn short_name(world: &mut World) -> Step {
    let name = TopicName::parse(&world.topic(THE)?)?;
    world.topics.insert("full".to_owned(), name.to_string());
    world.topics.insert(THE.to_owned(), name.local().to_owned());
    Ok(())
}

/// From here on the application writes `persistent://` for the topic's domain.
#[given("the topic is called by its persistent name")]
fn persistent_name(world: &mut World) -> Step {
    let name = TopicName::parse(&world.topic(THE)?)?;
    world.topics.insert("full".to_owned(), name.to_string());
    world.topics.insert(THE.to_owned(), name.with_domain(Domain::Persistent).to_string());
    Ok(())
}

fn classic(world: &mut World) -> String {
    let local = world.fresh_name(THE);
    world.topics.insert(THE.to_owned(), format!("persistent://public/default/{local}"));
    format!("/admin/v2/persistent/public/default/{local}")
}

/// A name that nothing has been made under, in a namespace whose policy permits or forbids auto-creation.
#[given(regex = r"^the name of an absent topic, in a namespace that (permits|forbids) auto-creation$")]
async fn absent(world: &mut World, policy: String) -> Step {
    let local = world.fresh_name(THE);
    let namespace = format!("public/ns-{local}");
    world.admin(Method::PUT, &format!("/admin/v2/namespaces/{namespace}"), Some(json!({}))).await?;
    let body = json!({
        "allowAutoTopicCreation": policy == "permits",
        "topicType": "non-partitioned",
    });
    let path = format!("/admin/v2/namespaces/{namespace}/autoTopicCreation");
    world.admin(Method::POST, &path, Some(body)).await?;
    world.topics.insert(THE.to_owned(), format!("topic://{namespace}/{local}"));
    Ok(())
}

/// A name in a tenant and namespace that do not exist.
#[given("the name of a topic in a namespace that does not exist")]
fn absent_namespace(world: &mut World) {
    let local = world.fresh_name(THE);
    world.topics.insert(THE.to_owned(), format!("topic://nobody/nowhere-{local}/{local}"));
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
    world.judge(&["API-7.3", "API-7.4"], answer.status == 404, || {
        format!("the topic must not exist, and the broker answers {} for it", answer.status)
    });
    Ok(())
}
