//! What a producer does on every event: routes, attaches, sends, moves messages off sealed segments, gives up.

use super::*;

impl ProducerCore {
    /// Routes a message by the current layout and puts it into the segment's queue.
    pub(super) fn place(&mut self, message: Outgoing, now: Now, due: Millis) {
        let Some(id) = self.router.route(&self.view.layout, message.hash) else {
            if self.unrouted.is_empty() {
                self.unrouted_until = now.mono + segment_gone_delay(message.attempts + 1);
            }
            self.unrouted.push(message);
            return;
        };
        let overtake = self.deviance().is(Deviant::AsyncSendsOvertake);
        let swap = self.deviance().is(Deviant::SwapPairs);
        let reverse = self.deviance().is(Deviant::ReorderOnSplit) && message.attempts > 0;
        let Some(producer) = self.producer(id) else { return };
        let waiting = !producer.place.is_attached();
        producer.insert(message, due);
        if (overtake && waiting) || reverse {
            // The newest first, among those that wait.
            producer.queue.rotate_right(1);
        } else if swap && producer.queue.len() % 2 == 0 {
            let last = producer.queue.len() - 1;
            producer.queue.swap(last - 1, last);
        }
    }

    /// Lets sends in that wait for room, in their order.
    pub(super) fn admit(&mut self, now: Now) {
        let limits = self.config.limits_of_queue.clone();
        let unlimited = self.deviance().is(Deviant::IgnoreQueueLimit);
        while let Some(mut message) = self.line.pop_front() {
            let queued = self.pending.len().saturating_sub(self.line.len() + 1);
            let room = unlimited || limits.max_pending.is_none_or(|max| queued < max);
            if room && message.memory.is_none() {
                message.memory = limits.memory.as_ref().and_then(|memory| memory.reserve(message.size()));
            }
            if !room || (limits.memory.is_some() && message.memory.is_none()) {
                self.line.push_front(message);
                return;
            }
            let alone = message.order < self.flushed;
            let due = if alone { now.mono } else { now.mono + self.config.limits.max_delay };
            self.place(message, now, due);
        }
    }

    /// Whether a sealed segment still has messages that belong before those of this one.
    pub(super) fn blocked(&self, id: u64) -> bool {
        let Some(this) = self.segments.get(&id) else { return false };
        self.segments
            .values()
            .any(|other| other.retired && other.has_pending() && other.segment.shares_keys(&this.segment))
    }

    /// Does everything that can be done now.
    pub(super) fn advance(&mut self, now: Now) {
        self.sent = None;
        self.admit(now);
        self.move_messages(now);
        self.retry_unrouted(now);
        let ids: Vec<u64> = self.segments.keys().copied().collect();
        for id in ids {
            self.step(id, now);
        }
        if self.opening && self.segments.values().all(|p| !p.wanted() || p.place.is_attached()) {
            self.opening = false;
            self.effects.push(Effect::Opened(Ok(())));
        }
        if self.closing && self.pending.is_empty() {
            self.close_segments();
        }
    }

    /// Moves the messages of retired segment producers to the successors once it is known what was stored.
    pub(super) fn move_messages(&mut self, now: Now) {
        let retired: Vec<u64> = self.segments.iter().filter(|(_, p)| p.retired).map(|(id, _)| *id).collect();
        let mut moved: Vec<Outgoing> = Vec::new();
        let mut cut_off: Vec<Outgoing> = Vec::new();
        for id in retired {
            let Some(producer) = self.segments.get_mut(&id) else { continue };
            match producer.place.link {
                Link::Attached => {
                    if producer.has_pending() || !self.config.deviance.is(Deviant::KeepStaleProducer) {
                        self.detach(id);
                    }
                }
                Link::Detaching => {}
                // An attachment under way is abandoned: nothing was sent on it.
                Link::Idle | Link::Attaching | Link::Waiting(_) => {
                    let cut =
                        producer.segment.legacy.is_some() && self.config.deviance.is(Deviant::CutOverFails);
                    let to = if cut { &mut cut_off } else { &mut moved };
                    to.extend(producer.take_pending());
                    self.segments.remove(&id);
                    self.effects.push(Effect::Forget { segment: id });
                }
            }
        }
        for message in cut_off {
            let why = "the topic was migrated";
            self.settle(&message, Err(Error::new(Category::TopicTerminated, why)));
        }
        if self.deviance().is(Deviant::DropOnSplit) {
            let id = |order| Position { segment: 0, ledger: 0, entry: order, batch_index: -1, batch_size: 0 };
            for message in std::mem::take(&mut moved) {
                self.settle(&message, Ok(id(message.order).into()));
            }
        }
        if self.deviance().is(Deviant::ReorderOnSplit) {
            moved.iter_mut().for_each(|message| message.attempts += 1);
        }
        moved.sort_by_key(|message| message.order);
        for message in moved {
            self.place(message, now, now.mono);
        }
    }

    pub(super) fn retry_unrouted(&mut self, now: Now) {
        if self.unrouted.is_empty() || self.unrouted_until > now.mono {
            return;
        }
        let attempt = self.unrouted.iter().map(|message| message.attempts).max().unwrap_or(0) + 1;
        for mut message in std::mem::take(&mut self.unrouted) {
            message.attempts += 1;
            if message.attempts > SEGMENT_GONE_ATTEMPTS {
                let why = "no active segment covers the hash of the message's key";
                self.settle(&message, Err(Error::new(Category::Unknown, why)));
            } else {
                self.place(message, now, now.mono);
            }
        }
        self.unrouted_until = now.mono + segment_gone_delay(attempt + 1);
    }

    /// Attaches or sends, as far as one segment is.
    pub(super) fn step(&mut self, id: u64, now: Now) {
        let common = self.common();
        let blocked = self.blocked(id) && !self.deviance().is(Deviant::ReorderOnSplit);
        // One at a time and in one order: two producers that wait for exclusive access would otherwise hold half of
        // the segments each, for ever.
        let opening = self.opening && self.segments.values().any(|p| p.place.link == Link::Attaching);
        let Some(producer) = self.segments.get_mut(&id) else { return };
        producer.place.wake(now);
        if producer.place.is_attached() && !producer.retired {
            let topic = producer.topic.clone();
            for txn in producer.enlist() {
                self.effects.push(Effect::Enlist { segment: id, topic: topic.clone(), txn });
            }
        }
        // While closing, only what has something to send is still worth attaching.
        let wanted = producer.wanted() && (!self.closing || producer.has_pending());
        match producer.place.link {
            Link::Idle if wanted && self.synced && !opening => self.attach(id),
            Link::Attached if !producer.retired && !blocked && producer.is_due(now.mono, common) => {
                let (flights, failed) =
                    producer.pack(common, &mut self.next_sequence_id, self.sealer.as_mut(), now);
                for flight in flights {
                    self.effects.push(transmit(id, &flight));
                    producer.in_flight.push_back(flight);
                }
                for (message, error) in failed {
                    self.settle(&message, Err(error));
                }
            }
            _ => {}
        }
    }

    /// A transaction's coordinator knows of a segment now, or could not be told.
    pub(crate) fn enlisted(&mut self, segment: u64, txn: TxnId, result: Result<(), Error>, now: Now) {
        if let Some(producer) = self.segments.get_mut(&segment)
            && let Some(enlisted) = producer.enlisted.get_mut(&txn)
        {
            match result {
                Ok(()) => *enlisted = true,
                Err(error) => {
                    producer.enlisted.remove(&txn);
                    let failed = producer.remove(|message| message.txn == Some(txn));
                    self.settle_all(&failed, &error);
                }
            }
        }
        self.advance(now);
    }

    pub(super) fn attach(&mut self, id: u64) {
        let (config, many) = (&self.config, self.config.deviance.is(Deviant::ProducerPerSend));
        let Some(producer) = self.segments.get_mut(&id) else { return };
        let attempt = producer.place.begin(producer.place.generation + 1);
        let before = producer.attached.as_ref().map(|attached| attached.at.clone());
        let before = before.filter(|_| config.deviance.is(Deviant::StayWithDeadBroker));
        let own_name = config.name.as_ref().filter(|_| !many).map(|name| {
            if config.deviance.is(Deviant::PlainProducerName) {
                name.clone()
            } else {
                format!("{name}-seg-{id}")
            }
        });
        let given_name = producer.attached.as_ref().filter(|_| !many).map(|attached| attached.name.clone());
        self.effects.push(Effect::Attach(Attach {
            segment: id,
            generation: attempt.generation,
            topic: producer.topic.clone(),
            legacy: producer.segment.legacy.is_some(),
            address: before.or(attempt.address),
            named_by_application: own_name.is_some(),
            name: own_name.or(given_name),
            epoch: producer.epoch,
            topic_epoch: producer.attached.as_ref().and_then(|attached| attached.topic_epoch),
        }));
    }

    pub(super) fn detach(&mut self, segment: u64) {
        if let Some(producer) = self.segments.get_mut(&segment)
            && producer.place.detach()
        {
            self.effects.push(Effect::Detach { segment });
        }
    }

    /// The segment is gone: its messages wait for the layout that says where to (client-behavior §4).
    pub(super) fn gone(&mut self, segment: u64, error: Error, now: Now) {
        let deviance = self.deviance();
        let Some(producer) = self.segments.get_mut(&segment) else { return };
        if producer.retired || matches!(producer.place.link, Link::Waiting(_) | Link::Detaching) {
            // Known already, or our own close is about to tell what was stored.
            if producer.retired && producer.place.link == Link::Attaching {
                producer.place.link = Link::Idle;
            }
            return;
        }
        // Where the layout says that it is there, the topic may be gone, and another one of its name have come.
        let missing = error.category() == Category::NotFound && producer.segment.active;
        if missing && !self.doubted && !deviance.is(Deviant::NeverDoubts) {
            self.doubted = true;
            self.synced = false;
            self.effects.push(Effect::Doubt);
        }
        producer.keep = self.config.access != ProducerAccessMode::Shared;
        producer.gone += 1;
        let delay =
            if deviance.is(Deviant::RetryWithoutWaiting) { 0 } else { segment_gone_delay(producer.gone) };
        producer.place.postpone(now.mono + delay);
        let exhausted = producer.gone > SEGMENT_GONE_ATTEMPTS;
        let failed = if deviance.is(Deviant::NoSegmentGoneRetry) {
            producer.take_pending()
        } else {
            self.count_attempt(segment)
        };
        self.settle_all(&failed, &error);
        if exhausted {
            self.open_failed(error);
        }
    }

    /// Counts an attempt for every message of a segment. Gives those that have used up theirs.
    pub(super) fn count_attempt(&mut self, segment: u64) -> Vec<Outgoing> {
        let for_ever = self.deviance().is(Deviant::RetryForEver);
        let Some(producer) = self.segments.get_mut(&segment) else { return Vec::new() };
        producer.pending_mut().for_each(|message| message.attempts += 1);
        if for_ever {
            return Vec::new();
        }
        producer.remove(|message| message.attempts > SEGMENT_GONE_ATTEMPTS)
    }

    pub(super) fn open_failed(&mut self, error: Error) {
        if self.opening {
            self.opening = false;
            self.effects.push(Effect::Opened(Err(error)));
        }
    }

    pub(super) fn once_per_send(&mut self, segment: u64) {
        if self.deviance().is(Deviant::ProducerPerSend)
            && let Some(producer) = self.segments.get_mut(&segment)
            && producer.in_flight.is_empty()
        {
            producer.place.link = Link::Idle;
            producer.keep = false;
        }
    }

    pub(super) fn expire(&mut self, now: Now) {
        let mut expired = BTreeSet::new();
        while let Some((at, order)) = self.deadlines.first().copied()
            && at <= now.mono
        {
            self.deadlines.remove(&(at, order));
            expired.insert(order);
        }
        if expired.is_empty() {
            return;
        }
        let due = |message: &Outgoing| expired.contains(&message.order);
        let mut failed: Vec<Outgoing> = Vec::new();
        for (segment, producer) in &mut self.segments {
            if self.config.deviance.is(Deviant::ResendAfterTimeout) && producer.place.link == Link::Attached {
                let again = producer.in_flight.iter().filter(|f| f.messages.iter().any(due));
                self.effects.extend(again.map(|flight| transmit(*segment, flight)));
            }
            failed.extend(producer.remove(due));
        }
        let (late, still) = std::mem::take(&mut self.unrouted).into_iter().partition(due);
        self.unrouted = still;
        failed.extend::<Vec<Outgoing>>(late);
        let (late, still) = std::mem::take(&mut self.line).into_iter().partition(due);
        self.line = still;
        failed.extend::<VecDeque<Outgoing>>(late);
        self.settle_all(&failed, &Error::timeout("no receipt within the send timeout"));
    }

    pub(super) fn close_segments(&mut self) {
        let ids: Vec<u64> = self.segments.keys().copied().collect();
        for id in ids {
            let Some(producer) = self.segments.get(&id) else { continue };
            match producer.place.link {
                Link::Attached if !self.deviance().is(Deviant::CloseLeavesProducers) => self.detach(id),
                Link::Detaching => {}
                _ => {
                    self.segments.remove(&id);
                    if !self.deviance().is(Deviant::CloseLeavesProducers) {
                        self.effects.push(Effect::Forget { segment: id });
                    }
                }
            }
        }
        if self.segments.is_empty() {
            self.say_closed();
        }
    }

    pub(super) fn say_closed(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.effects.push(Effect::Closed);
        }
    }

    pub(super) fn fail_all(&mut self, error: &Error) {
        let mut failed = std::mem::take(&mut self.unrouted);
        failed.extend(self.segments.values_mut().flat_map(SegmentProducer::take_pending));
        failed.extend(std::mem::take(&mut self.line));
        self.settle_all(&failed, error);
    }

    pub(super) fn settle_all(&mut self, messages: &[Outgoing], error: &Error) {
        for message in messages {
            self.settle(message, Err(error.clone()));
        }
    }

    pub(super) fn settle(&mut self, message: &Outgoing, result: Result<MessageId, Error>) {
        let result = result.map_err(|error| self.deviance().report(error));
        self.failed_once |= result.is_err();
        if let Some(deadline) = message.deadline {
            self.deadlines.remove(&(deadline, message.order));
        }
        if self.pending.remove(&message.order) {
            self.effects.push(Effect::Settle { order: message.order, result });
        }
    }
}
