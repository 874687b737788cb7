// SPDX-License-Identifier: Apache-2.0
//
// Axes: where the ticks stand, and how numbers, bytes and times are written.
"use strict";

const SUFFIXES = ["", "k", "M", "G", "T", "P"];
const BYTES = [" B", " KiB", " MiB", " GiB", " TiB", " PiB"];
const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

// The least of 1, 2 and 5 times a power of ten that is not below `least`.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(k => k * power).find(step => step >= least * (1 - 1e-9));
}

function timeStep(least) {
  if (least <= 1) return niceStep(least);
  return TIMES.find(step => step >= least) ?? 86400 * niceStep(least / 86400);
}

// Of numbers up to `high`, which are written in that unit.
function bytesStep(least, high) {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(1, high)) / 10));
  return unit * niceStep(Math.max(1, least) / unit);
}

// How far ticks of this kind stand apart, so that there are at most `most` of them.
function stepOf(kind, low, high, most) {
  const least = (high - low) / most;
  if (kind === "time") return timeStep(least);
  if (kind === "bytes") return bytesStep(least, high);
  return kind === "count" ? Math.max(1, niceStep(least)) : niceStep(least);
}

function linearTicks(kind, low, high, most) {
  const step = stepOf(kind, low, high, most), ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
    ticks.push({ at: i * step, text: written(kind, i * step, step) });
  return ticks;
}

// Powers of ten, every second or third of many, with their doubles and halves where there are few; within one power as
// on a linear axis.
function logTicks(kind, low, high, most) {
  const first = Math.floor(Math.log10(low) + 1e-9), last = Math.ceil(Math.log10(high) - 1e-9);
  if (last - first <= 1) return linearTicks(kind, low, high, most);
  const every = Math.max(1, Math.ceil((last - first) / most)), parts = last - first <= 3 ? [1, 2, 5] : [1], ticks = [];
  for (let power = first; power <= last; power += every)
    for (const part of parts) ticks.push({ at: part * 10 ** power, text: written(kind, part * 10 ** power, 10 ** power) });
  return ticks.filter(tick => tick.at >= low * (1 - 1e-9) && tick.at <= high * (1 + 1e-9));
}

// Decimals that tell numbers apart which are `step` units apart.
function decimals(step) {
  return Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}

function withSuffix(value, step, base, names) {
  const of = Math.max(Math.abs(value), base === 1024 ? 1 : step);
  const at = Math.min(names.length - 1, Math.max(0, Math.floor(Math.log(of) / Math.log(base) + 1e-9)));
  const unit = base ** at;
  return (value / unit).toFixed(decimals(step / unit)) + names[at];
}

function clock(seconds, step) {
  if (Math.abs(seconds) < 60) return seconds.toFixed(decimals(step)) + " s";
  const s = Math.round(seconds), parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  let rest = s, out = [];
  for (const [unit, name] of parts) {
    if (rest >= unit) out.push(Math.floor(rest / unit) + name);
    rest %= unit;
  }
  return out.slice(0, 2).join(" ");
}

// A number of an axis whose ticks are `step` apart.
function written(kind, value, step) {
  if (Math.abs(value) < step * 1e-6) value = 0;
  if (kind === "time") return clock(value, step);
  if (kind === "bytes") return withSuffix(value, step, 1024, BYTES);
  if (value === 0) return "0";
  if (Math.abs(value) >= 1e18 || Math.max(Math.abs(value), step) < 1e-3 || step < 1e-6)
    return value.toExponential(Math.min(6, Math.max(0, Math.floor(Math.log10(Math.abs(value) / step) + 1e-9))));
  return withSuffix(value, step, 1000, SUFFIXES);
}

// A number by itself, to six digits.
function exact(kind, value) {
  if (kind === "time") return clock(value, 0.1);
  if (kind === "bytes") return withSuffix(value, Math.max(1, Math.abs(value) / 1e4), 1024, BYTES);
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? String(value) : String(Number(value.toPrecision(6)));
}
