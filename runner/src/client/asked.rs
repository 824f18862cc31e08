//! What a client in another process was asked in a scenario and has not answered: for the message of a step that does not
//! end.

use std::cell::RefCell;
use std::rc::Rc;

/// How many requests a message names.
const NAMED: usize = 5;

/// The requests of one scenario. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Asked(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    /// The step that is under way, keyword and text.
    step: Rc<str>,
    /// Whether anything was asked at all.
    any: bool,
    open: Vec<Request>,
}

#[derive(Debug)]
struct Request {
    id: u64,
    method: &'static str,
    step: Rc<str>,
}

impl Asked {
    /// What is asked from now on, this step asks.
    pub(crate) fn step(&self, step: &str) {
        self.0.borrow_mut().step = step.into();
    }

    /// A request goes out.
    pub(crate) fn asked(&self, id: u64, method: &'static str) {
        let mut state = self.0.borrow_mut();
        state.any = true;
        let step = Rc::clone(&state.step);
        state.open.push(Request { id, method, step });
    }

    /// Its answer is here.
    pub(crate) fn answered(&self, id: u64, method: &'static str) {
        let open = &mut self.0.borrow_mut().open;
        if let Some(place) = open.iter().position(|r| r.id == id && r.method == method) {
            open.remove(place);
        }
    }

    /// The message of a step that did not end, with what is still to be answered below it: ids differ from run to run, so
    /// the first line has none.
    pub(crate) fn complete(&self, message: String) -> String {
        match self.unanswered() {
            Some(unanswered) => format!("{message}\n{unanswered}"),
            None => message,
        }
    }

    /// What is still to be answered, as a sentence; `None` of a client that is asked nothing over a protocol.
    fn unanswered(&self) -> Option<String> {
        let state = self.0.borrow();
        if !state.any {
            return None;
        }
        if state.open.is_empty() {
            return Some("the adapter has answered everything that it was asked".to_owned());
        }
        let mut named: Vec<String> = state
            .open
            .iter()
            .take(NAMED)
            .map(|Request { id, method, step }| match *step == state.step {
                true => format!("{method} (id {id}, asked in this step)"),
                false => format!("{method} (id {id}, asked in {step:?})"),
            })
            .collect();
        if let Some(more) = state.open.len().checked_sub(NAMED).filter(|more| *more > 0) {
            named.push(format!("{more} more"));
        }
        Some(format!("the adapter has not answered {}", named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_with_the_step_that_asked_until_they_are_answered() {
        let asked = Asked::default();
        assert_eq!(asked.unanswered(), None);
        asked.step("When one");
        asked.asked(1, "receive");
        asked.asked(2, "send");
        asked.step("Then two");
        asked.asked(3, "flush");
        asked.answered(2, "send");
        let told = "the adapter has not answered receive (id 1, asked in \"When one\"), flush (id 3, asked in this step)";
        assert_eq!(asked.unanswered().unwrap(), told);
        (4..9).for_each(|id| asked.asked(id, "send"));
        assert!(asked.unanswered().unwrap().ends_with(", send (id 6, asked in this step), 2 more"));
        asked.answered(1, "receive");
        (3..9).for_each(|id| asked.answered(id, if id == 3 { "flush" } else { "send" }));
        assert_eq!(asked.unanswered().unwrap(), "the adapter has answered everything that it was asked");
    }
}
