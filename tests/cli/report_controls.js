// SPDX-License-Identifier: Apache-2.0
//
// Uses the controls of a report as its reader would, for report_test.py, and tells what is drawn then.
"use strict";

const figureOf = title => [...document.querySelectorAll("figure")].find(f => f.querySelector("figcaption").textContent === title);
const texts = (figure, anchor) => [...figure.querySelectorAll(`svg > text[text-anchor=${anchor}]`)].map(t => t.textContent);

function set(id, field, value, kind) {
  const control = document.getElementById(id);
  control[field] = value;
  control.dispatchEvent(new Event(kind));
}

function pointer(plot, kind, x) {
  const { left, top } = plot.getBoundingClientRect();
  const where = { clientX: left + x, clientY: top + 60, button: 0, pointerId: 1, bubbles: true };
  plot.dispatchEvent(kind === "dblclick" ? new MouseEvent(kind, where) : new PointerEvent(kind, where));
}

setTimeout(() => {
  const found = {}, loss = figureOf("Loss"), plot = loss.querySelector(".plot"), width = plot.clientWidth;
  plot.setPointerCapture = () => {}; // there is no real pointer
  for (const axis of ["time", "samples", "step"]) {
    set("axis", "value", axis, "change");
    found[axis] = texts(loss, "middle");
  }
  set("logY", "checked", true, "change");
  found.powers = texts(figureOf("rate"), "end").filter(text => /^(0\.0*)?1(e-\d)?$/.test(text));
  set("logY", "checked", false, "change");

  const straight = loss.querySelector("path.line").getAttribute("d");
  set("smoothing", "value", "0.9", "input");
  found.smoothed = straight !== loss.querySelector("path.line").getAttribute("d") && loss.querySelectorAll("path.raw").length === 3;
  set("smoothing", "value", "0", "input");

  const box = document.querySelector("#runs input");
  box.click();
  found.hidden = loss.querySelectorAll("path.line").length;
  box.click();

  pointer(plot, "pointermove", width / 3);
  const tip = document.getElementById("tip");
  found.tip = [tip.querySelector("b").textContent, ...[...tip.querySelectorAll("td:nth-child(2)")].map(d => d.textContent)]
    .map(text => Number(text.replace("step ", "")));

  const range = title => charts.find(c => c.chart.title === title).xs;
  pointer(plot, "pointerdown", width / 3);
  pointer(plot, "pointermove", width * 2 / 3);
  pointer(plot, "pointerup", width * 2 / 3);
  found.zoomed = range("Loss");
  found.others = range("rate");
  pointer(plot, "dblclick", width / 2);
  found.whole = range("Loss");

  set("filter", "value", "ra te", "input");
  found.filtered = [...document.querySelectorAll("figure:not([hidden]) figcaption")].map(c => c.textContent)
    .filter(title => title === "rate" || title === "Loss");
  found.failures = failures;
  const pre = document.createElement("pre");
  pre.id = "found";
  pre.textContent = JSON.stringify(found);
  document.body.append(pre);
}, 1000);
