import type { RecentMinute } from "../../../core/recent.ts";
import { type Html, html } from "./html.ts";
import { amount, clockTime } from "./words.ts";

const BAR = 8;
const HEIGHT = 40;

export type Tone = "good" | "bad" | "warn" | "plain";

/** One plot: how often something happened in each minute. */
export interface Series {
  readonly name: string;
  readonly tone: Tone;
  readonly counts: readonly number[];
}

/** Draws a bar for each minute, the last one on the right. The highest bar fills the height. */
export function plot({ name, tone, counts }: Series, minutes: readonly RecentMinute[]): Html {
  const highest = Math.max(...counts, 1);
  const total = counts.reduce((sum, count) => sum + count, 0);
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
      <span>${name}</span
      ><span
        ><b>${amount(total)}</b>
        <span class="soft">max ${amount(Math.max(...counts, 0))} a minute</span></span
      >
    </figcaption>
    <svg
      viewBox="0 0 ${width} ${HEIGHT + 1}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${name}: ${amount(total)} in ${counts.length} minutes"
    >
      <line class="base" x1="0" x2="${width}" y1="${HEIGHT}" y2="${HEIGHT}" />
      ${bars}
    </svg>
  </figure>`;
}

/** Returns one series for each word that occurred, the most frequent first. */
export function seriesOf(
  minutes: readonly RecentMinute[],
  kind: "logins" | "refusals",
  toneOf: (word: string) => Tone,
): Series[] {
  const words = new Set(minutes.flatMap((minute) => Object.keys(minute[kind])));
  const total = ({ counts }: Series): number => counts.reduce((sum, count) => sum + count, 0);
  return Array.from(words, (name) => ({
    name,
    tone: toneOf(name),
    counts: minutes.map((minute) => minute[kind][name] ?? 0),
  })).toSorted((a, b) => total(b) - total(a));
}
