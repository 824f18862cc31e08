//! What is stored beside a layout and pushes it: load reports of segments, and the end of all of it. In 5.0.1 each is a record beside the layout, and whatever is written there pushes the layout
//! again at its epoch: once for every segment, at the first round of reports after it came into being. Later reports are
//! written when a segment's rates change much, which the simulator, who has no rates, leaves out.

use stc_proto::TopicName;

use super::{Cluster, flow::Due};
use crate::core::ids::Millis;

impl Cluster {
    /// Sees to it that a new topic takes part in the rounds of reports, if this broker has them. They are in step with
    /// the clock, for all topics.
    pub(super) fn start_load_reports(&mut self, topic: &TopicName, life: u64, now: Millis) {
        if let Some(rounds) = now.checked_div(self.config.profile.load_report_interval_ms) {
            let next = (rounds + 1).saturating_mul(self.config.profile.load_report_interval_ms);
            self.agenda.add(next, Due::LoadReport(topic.clone(), life));
        }
    }

    /// A topic is about to go. In 5.0.1 the records beside the layout go first, the controller's before the others, and
    /// each of them pushes the layout that is about to go too.
    pub(super) fn push_as_deleted(&mut self, topic: &TopicName) {
        if !self.config.profile.registrations_push_layout {
            return;
        }
        let consumers = self.registered(topic).len();
        let Some(scalable) = self.scalable.get_mut(topic) else { return };
        let controllers = usize::from(scalable.controller.take().is_some());
        let records = controllers + scalable.groups.keys().count() + consumers + scalable.reported.len();
        for _ in 0..records {
            self.push(topic);
        }
    }

    /// A round of reports.
    pub(super) fn report_loads(&mut self, topic: &TopicName, life: u64, now: Millis) {
        let Some(scalable) = self.scalable.get_mut(topic).filter(|scalable| scalable.life == life) else {
            return;
        };
        let new: Vec<u64> = scalable
            .layout
            .segments()
            .filter(|segment| !segment.is_legacy() && !scalable.reported.contains(&segment.id))
            .map(|segment| segment.id)
            .collect();
        scalable.reported.extend(&new);
        for _ in new {
            self.push(topic);
        }
        self.start_load_reports(topic, life, now);
    }
}
