
// ---- a scenario: what went wrong, its steps, its exchange ----

/** Everything about a scenario in one run. */
function panel(place, run) {
  const scenario = data.scenarios[place];
  const outcome = scenario.runs[run];
  const box = el("div.panel");
  if (!outcome) return el("div.panel", {}, el("p.sub", {}, "Not in this run."));
  if (outcome.failure) {
    box.append(el("div.failure", {},
      el("p.message", {}, outcome.failure.message),
      el("p.sub", {}, outcome.failure.requirement ? ["breaks ", link(outcome.failure.requirement), ", "] : null,
        outcome.failure.place)));
  }
  if (outcome.reason) box.append(el("p.reason", {}, outcome.reason));
  box.append(el("ol.steps", {}, outcome.steps.map((step) => {
    const [look, sign] = { passed: ["good", "✓"], failed: ["bad", "✗"], skipped: ["dim", "–"] }[step.status];
    return el(`li.${step.status}`, {}, el(`span.sign.${look}`, { title: step.status }, sign), step.text);
  })));
  if (outcome.wire) {
    const details = el("details.wire", {},
      el("summary", {}, `Wire exchange, ${plural(outcome.wire, "record")}`));
    lazily(details, () => details.append(diagram(outcome, exchange(run, place))));
    box.append(details);
    if (outcome.failure) details.fillNow();
  } else {
    box.append(el("p.sub", {}, "The run kept no wire exchange of it (--trace all keeps all)."));
  }
  if (outcome.stderr.length) {
    box.append(el("details.stderr", {}, el("summary", {}, "Standard error of the client"),
      el("pre", {}, outcome.stderr.join("\n"))));
  }
  box.append(copyable(outcome.replay));
  return box;
}

/** A link to a requirement of the matrix. */
function link(id) {
  return document.getElementById(id) ? el("a", { href: `#${id}` }, id) : el("code", {}, id);
}

function cell(outcome) {
  return outcome
    ? el(`span.cell.${outcome.look}`, {}, el("span", { "aria-hidden": "true" }, outcome.sign), ` ${outcome.verdict}`)
    : el("span.cell.dim", {}, "–");
}

/** A scenario as a line that opens; with several runs its panels stand side by side. */
function scenarioDetails(place) {
  const scenario = data.scenarios[place];
  const body = el("div.body");
  const details = el("details.scenario", {},
    el("summary", {},
      el("span.what", {}, el("code", {}, scenario.id), " ", el("span.text", {}, scenario.name)),
      el("span.cells", {}, scenario.runs.map(cell))),
    body);
  details.dataset.s = place;
  lazily(details, () => {
    body.append(el("p.sub", {}, scenario.place, scenario.requirements.length ? ", cites " : "",
      scenario.requirements.flatMap((id, n) => [n ? ", " : "", link(id)])));
    if (several) {
      body.append(el("div.side", {}, data.runs.map((run, n) => el("section", {},
        el("h4", {}, el("span.letter", {}, run.letter), run.label, " ", cell(scenario.runs[n])), panel(place, n)))));
    } else {
      body.append(panel(place, 0));
    }
  });
  return details;
}

// Entries of "needs attention" are about one run.
for (const details of $$("#attention details.scenario")) {
  lazily(details, () => {
    $(".body", details).replaceChildren(panel(Number(details.dataset.s), Number(details.dataset.r)));
  });
}

// Requirements hold the ids of their scenarios until they are opened.
for (const details of $$("details.req")) {
  lazily(details, () => {
    for (const item of $$(".cited > li", details)) {
      const place = byId.get(item.textContent);
      if (place === undefined) item.append(el("span.sub", {}, " not selected"));
      else item.replaceChildren(scenarioDetails(place));
    }
  });
}

// What stands open is what is printed. The first failures are opened for it, of the rest the headlines are enough.
addEventListener("beforeprint", () => {
  for (const details of $$("#attention > details")) {
    if (details.fillNow) details.fillNow();
    else details.open = true;
  }
});
