import { statSync } from "node:fs";
import { formatDuration } from "../../lib/text/duration.ts";
import {
  bad,
  type ClockDifference,
  type Examined,
  type Finding,
  type FindingGroup,
  good,
  skipped,
  warning,
} from "./finding.ts";

/** Tolerated difference, in milliseconds: the `Date` of a response has whole seconds, and the response takes time. */
const TOLERATED_MS = 5_000;
/** The tolerance for `iat` between replicas, and the default tolerance for trusted issuers, in milliseconds. */
const TOO_MUCH_MS = 60_000;

/**
 * Compares the clock of this machine with the modification time of the configuration file and with the clocks of other
 * machines.
 */
export function checkClock(file: string, { nowMs, clocks }: Examined): FindingGroup {
  const ahead = statSync(file).mtimeMs - nowMs;
  const findings: Finding[] = [
    ahead > TOO_MUCH_MS
      ? bad(`the configuration was written ${words(ahead)} in the future`, HINT)
      : good("not before the configuration was written"),
    ...clocks.map(difference),
  ];
  if (clocks.length === 0) findings.push(skipped("no other clock was reachable"));
  return { name: "clock", findings };
}

function difference({ server, behindMs }: ClockDifference): Finding {
  const apart = Math.abs(behindMs);
  const message = `${words(apart)} ${behindMs > 0 ? "behind" : "ahead of"} ${server}`;
  if (apart <= TOLERATED_MS) return good(`agrees with ${server}`);
  return (apart > TOO_MUCH_MS ? bad : warning)(message, HINT);
}

const HINT = "Sallyport accepts tokens too long, or refuses valid ones: set the clock by NTP";

function words(milliseconds: number): string {
  return formatDuration(Math.floor(milliseconds / 1000) * 1000);
}
