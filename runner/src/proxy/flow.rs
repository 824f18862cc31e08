//! The way of a frame: faults, journal, output.

use std::time::Duration;

use bytes::Bytes;
use sim_broker::core::cluster::about;
use sim_broker::core::fault::{At, FaultEffect, Strike};
use sim_broker::core::ids::ConnId;
use sim_broker::core::journal::{Direction, Event};
use stc_proto::pulsar::CommandPing;
use stc_proto::{Command, Frame, FrameError};

use super::awaited::{Answer, Awaited};
use super::{Proxy, State};
use crate::tap::{relay, rewrite};

impl Proxy {
    /// A frame came from one side.
    pub(super) fn arrived(&self, conn: ConnId, direction: Direction, bytes: Bytes) {
        let mut state = self.lock();
        let Some(link) = state.links.get_mut(&conn) else { return };
        let frame = match relay::decode(bytes.clone()) {
            Ok(frame) => frame,
            Err(error) => {
                // The two sides may know more than this program does.
                let to = if direction == Direction::ToBroker { &link.to_broker } else { &link.to_client };
                let _ = to.send(bytes);
                if !matches!(error, FrameError::UnknownCommand(_)) {
                    self.log(&mut state, conn, direction, Event::BadFrame { reason: error.to_string() });
                }
                return;
            }
        };
        let overtaken = match direction {
            Direction::ToBroker => {
                link.names.learn(&frame.command);
                link.overtaken[0].take()
            }
            _ => link.overtaken[1].take(),
        };
        match direction {
            Direction::ToBroker => self.to_broker(&mut state, conn, frame),
            _ => self.to_client(&mut state, conn, frame),
        }
        if let Some(frame) = overtaken {
            self.forward(&mut state, conn, direction, frame);
        }
    }

    fn to_broker(&self, state: &mut State, conn: ConnId, frame: Frame) {
        self.log(state, conn, Direction::ToBroker, Event::Frame(frame.clone()));
        let Some(strike) = strike(state, conn, &frame, Direction::ToBroker) else {
            return self.forward(state, conn, Direction::ToBroker, frame);
        };
        let command = frame.command.name();
        let held = (strike.effect == FaultEffect::Hold && strike.at == At::Before)
            .then(|| state.faults.hold(strike.id, conn, Direction::ToBroker, frame.clone()));
        let event = Event::Fault { id: strike.id, effect: strike.describe(), command, held };
        self.log(state, conn, Direction::ToBroker, event);
        let error = match &strike.effect {
            FaultEffect::Error { code, message } => about::error_answer(&frame.command, code.0, message),
            _ => None,
        };
        if strike.at == At::After {
            let answer = Answer::to(&frame.command);
            self.forward(state, conn, Direction::ToBroker, frame.clone());
            if strike.effect == FaultEffect::Duplicate {
                return self.forward(state, conn, Direction::ToBroker, frame);
            }
            let Some(link) = state.links.get_mut(&conn) else { return };
            if answer == Answer::Pong {
                link.pings.push_back(true);
                let _ = link.to_broker.send(Frame::from(CommandPing {}).to_bytes());
            }
            link.awaited.push(Awaited { answer, strike, command, error });
            return;
        }
        match strike.effect {
            FaultEffect::Drop | FaultEffect::Hold => {}
            FaultEffect::Delay { ms } => self.later(ms, conn, Direction::ToBroker, frame),
            FaultEffect::Close => self.lose(state, conn, "broker", &struck(strike.id, command)),
            FaultEffect::Error { .. } => {
                if let Some(error) = error {
                    self.forward(state, conn, Direction::ToClient, error.into());
                }
            }
            FaultEffect::Duplicate => {
                self.forward(state, conn, Direction::ToBroker, frame.clone());
                self.forward(state, conn, Direction::ToBroker, frame);
            }
            FaultEffect::Reorder => {
                if let Some(link) = state.links.get_mut(&conn) {
                    link.overtaken[0] = Some(frame);
                }
            }
        }
    }

    fn to_client(&self, state: &mut State, conn: ConnId, frame: Frame) {
        let Some(link) = state.links.get_mut(&conn) else { return };
        let own_pong = matches!(frame.command, Command::Pong(_)) && link.pings.pop_front() == Some(true);
        let is_answer = |awaited: &Awaited| match awaited.answer {
            Answer::Pong => own_pong,
            ref answer => answer.is(&frame.command),
        };
        if let Some(index) = link.awaited.iter().position(is_answer) {
            let awaited = link.awaited.remove(index);
            let frame = (!own_pong).then_some(frame);
            return self.strike_answer(state, conn, awaited, frame);
        }
        // What comes before the PONG may be what the broker did: messages after a FLOW, for one.
        let is_lost = |awaited: &Awaited| {
            awaited.answer == Answer::Pong && matches!(awaited.strike.effect, FaultEffect::Close)
        };
        if link.awaited.iter().any(is_lost) {
            return;
        }
        match strike(state, conn, &frame, Direction::ToClient) {
            None => self.forward(state, conn, Direction::ToClient, frame),
            Some(strike) => self.strike_to_client(state, conn, frame, strike),
        }
    }

    /// The broker acted on a frame, as this answer shows; a command without an answer has none.
    fn strike_answer(&self, state: &mut State, conn: ConnId, awaited: Awaited, answer: Option<Frame>) {
        let Awaited { strike, command, error, .. } = awaited;
        match (strike.effect, answer) {
            (FaultEffect::Close, _) => {
                self.lose(state, conn, "broker", &format!("fault {} struck after {command}", strike.id));
            }
            (FaultEffect::Error { .. }, _) => {
                if let Some(error) = error {
                    self.forward(state, conn, Direction::ToClient, error.into());
                }
            }
            (FaultEffect::Hold, Some(frame)) => {
                let name = frame.command.name();
                let held = Some(state.faults.hold(strike.id, conn, Direction::ToClient, frame));
                let event = Event::Fault { id: strike.id, effect: "hold".to_owned(), command: name, held };
                self.log(state, conn, Direction::ToClient, event);
            }
            (FaultEffect::Delay { ms }, Some(frame)) => self.later(ms, conn, Direction::ToClient, frame),
            _ => {}
        }
    }

    fn strike_to_client(&self, state: &mut State, conn: ConnId, frame: Frame, strike: Strike) {
        let command = frame.command.name();
        let held = (strike.effect == FaultEffect::Hold)
            .then(|| state.faults.hold(strike.id, conn, Direction::ToClient, frame.clone()));
        let event = Event::Fault { id: strike.id, effect: strike.describe(), command, held };
        self.log(state, conn, Direction::ToClient, event);
        match strike.effect {
            FaultEffect::Drop | FaultEffect::Hold | FaultEffect::Error { .. } => {}
            FaultEffect::Delay { ms } => self.later(ms, conn, Direction::ToClient, frame),
            FaultEffect::Close => {
                if strike.at == At::After {
                    self.forward(state, conn, Direction::ToClient, frame);
                }
                self.lose(state, conn, "broker", &struck(strike.id, command));
            }
            FaultEffect::Duplicate => {
                self.forward(state, conn, Direction::ToClient, frame.clone());
                self.forward(state, conn, Direction::ToClient, frame);
            }
            FaultEffect::Reorder => {
                if let Some(link) = state.links.get_mut(&conn) {
                    link.overtaken[1] = Some(frame);
                }
            }
        }
    }

    /// Sends a frame on. One for the client goes into the journal now, and names the proxy instead of the brokers.
    pub(super) fn forward(&self, state: &mut State, conn: ConnId, direction: Direction, mut frame: Frame) {
        if !state.links.contains_key(&conn) {
            return;
        }
        if direction == Direction::ToClient {
            self.log(state, conn, direction, Event::Frame(frame.clone()));
            let told = &mut |plain: Option<&str>, _tls: Option<&str>| {
                Some(rewrite::Urls { plain: self.local(state, plain?)?, tls: None })
            };
            rewrite::urls(&mut frame.command, told);
        }
        let Some(link) = state.links.get_mut(&conn) else { return };
        if direction == Direction::ToBroker && matches!(frame.command, Command::Ping(_)) {
            link.pings.push_back(false);
        }
        let to = if direction == Direction::ToBroker { &link.to_broker } else { &link.to_client };
        // The connection may be closing.
        let _ = to.send(frame.to_bytes());
    }

    fn later(&self, ms: u64, conn: ConnId, direction: Direction, frame: Frame) {
        let proxy = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            proxy.forward(&mut proxy.lock(), conn, direction, frame);
        });
    }

    /// Forgets a connection, which closes it. One that is gone already stays as it is.
    pub(super) fn lose(&self, state: &mut State, conn: ConnId, side: &'static str, reason: &str) {
        let Some(link) = state.links.remove(&conn) else { return };
        state.faults.forget(conn);
        let direction = if side == "client" { Direction::ToBroker } else { Direction::ToClient };
        let event = Event::TcpClose { side, reason: reason.to_owned() };
        self.record(state, conn, link.broker, direction, event);
    }

    fn log(&self, state: &mut State, conn: ConnId, direction: Direction, event: Event) {
        if let Some(broker) = state.links.get(&conn).map(|link| link.broker) {
            self.record(state, conn, broker, direction, event);
        }
    }
}

fn strike(state: &mut State, conn: ConnId, frame: &Frame, direction: Direction) -> Option<Strike> {
    let link = state.links.get(&conn)?;
    about::strike(&mut state.faults, frame, direction, link.broker, conn, &link.names)
}

fn struck(fault: u64, command: &str) -> String {
    format!("fault {fault} struck {command}")
}
