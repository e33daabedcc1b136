import type { RecentMinute } from "../../../core/recent.ts";
import type { Status } from "../../../core/status.ts";
import { type Html, html, section, type Tone } from "./table.ts";
import { amount, clockTime, type Series, seriesOf } from "./words.ts";

const BAR = 8;
const HEIGHT = 40;

export function loginsSection({ minutes }: Status): Html {
  const toneOf = (word: string): Tone =>
    word === "success" ? "good" : word === "bad_credentials" ? "warn" : "bad";
  const plots = seriesOf(minutes, "logins").map((each) => plot(each, toneOf(each.word), minutes));
  return plotsSection("logins", "Logins", "nobody logged in", plots, minutes);
}

export function refusalsPlots({ minutes }: Status): Html {
  const plots = seriesOf(minutes, "refusals").map((each) => plot(each, "plain", minutes));
  return plotsSection("reasons", "Refusals by reason", "nothing was refused", plots, minutes);
}

/** @param nothing what happened, if there are no plots. */
function plotsSection(
  id: string,
  title: string,
  nothing: string,
  plots: readonly Html[],
  minutes: readonly RecentMinute[],
): Html {
  const note = `the last ${minutes.length} minutes`;
  return section(
    id,
    title,
    note,
    plots.length === 0
      ? html`<p class="soft">In ${note}, ${nothing}.</p>`
      : html`<div class="plots">${plots}</div>`,
  );
}

/** Draws a bar for each minute, the last one on the right. The highest bar fills the height. */
function plot({ word, counts, total }: Series, tone: Tone, minutes: readonly RecentMinute[]): Html {
  const highest = Math.max(...counts, 1);
  const width = counts.length * BAR;
  const bars = counts.map((count, index) => {
    if (count === 0) return undefined;
    const height = Math.max(2, (count / highest) * (HEIGHT - 2));
    const y = (HEIGHT - height).toFixed(1);
    const at = clockTime(minutes[index]?.at ?? 0).slice(0, 5);
    return html`<rect
      class="${tone}"
      x="${index * BAR + 1}"
      y="${y}"
      width="${BAR - 2}"
      height="${height.toFixed(1)}"
      rx="1"
      ><title>${at}: ${amount(count)}</title></rect
    >`;
  });
  return html`<figure>
    <figcaption>
      <span>${word}</span
      ><span
        ><b>${amount(total)}</b>
        <span class="soft">max ${amount(Math.max(...counts, 0))} a minute</span></span
      >
    </figcaption>
    <svg
      viewBox="0 0 ${width} ${HEIGHT + 1}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${word}: ${amount(total)} in ${counts.length} minutes"
    >
      <line class="base" x1="0" x2="${width}" y1="${HEIGHT}" y2="${HEIGHT}" />
      ${bars}
    </svg>
  </figure>`;
}
