// The script of the report. It builds elements from data and sets their text; it never makes markup out of a string.
(() => {
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

/** An element: its tag with classes ("li.step.bad"), properties, children (nodes, texts, or nothing). */
function el(tag, properties, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "role") element[key] = value;
    else element.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

const data = JSON.parse($("#stc-data").textContent);
const byId = new Map(data.scenarios.map((scenario, place) => [scenario.id, place]));
const several = data.runs.length > 1;

/** The exchange of a scenario in a run, read on first use. */
const exchanges = new Map();
function exchange(run, place) {
  const id = `w-${run}-${place}`;
  if (!exchanges.has(id)) {
    const source = document.getElementById(id);
    exchanges.set(id, source ? JSON.parse(source.textContent) : []);
  }
  return exchanges.get(id);
}

const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
const time = (ms) => `${Math.floor(ms / 1000)}.${String(ms % 1000).padStart(3, "0")}`;

/** Calls `fill` when `details` opens for the first time. */
function lazily(details, fill) {
  let filled = false;
  const once = () => {
    if (filled || !details.open) return;
    filled = true;
    fill();
  };
  details.addEventListener("toggle", once);
  // For those who need it at once: toggle events come later than printing or scrolling.
  details.fillNow = () => { details.open = true; once(); };
}

/** Text to copy, with a button. */
function copyable(text) {
  const button = el("button.copy", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // No clipboard for pages from a file in some browsers: the selection does it too.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
  } }, "Copy");
  const code = el("code.command", {}, text);
  return el("p.replay", {}, code, button);
}
