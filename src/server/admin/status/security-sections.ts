import type { Status, StatusCertificate, StatusIssuer, StatusKey } from "../../../core/status.ts";
import { type Html, html } from "./html.ts";
import { badge, section, table } from "./table.ts";
import { moment, relative, span } from "./words.ts";

/** The sections about keys, certificates and issuers. */

const DAY_MS = 86_400_000;
/** An expiry within this time is shown as a warning. */
const SOON_MS = 14 * DAY_MS;

export function keysSection({ keys, certificate, now }: Status): Html {
  const rows = [
    ...(certificate === undefined ? [] : [certificateRow(certificate, now)]),
    ...keys.map((key) => keyRow(key, now)),
  ];
  return section(
    "keys",
    "Certificate and keys",
    "what is served, and what signs tokens and assertions",
    table(["What", "Name", "State", "Made", "Ends"], rows),
  );
}

function certificateRow({ subject, issuer, names, notAfter }: StatusCertificate, now: number) {
  const by = issuer === subject ? "signed by itself" : `from ${issuer}`;
  return [
    "Certificate",
    html`${subject} <span class="soft">${by}${names === "" ? "" : `; for ${names}`}</span>`,
    notAfter <= now ? badge("bad", "ended") : badge("good", "served"),
    "",
    endOf(notAfter, now),
  ];
}

const STATES = {
  signing: { tone: "good", text: "signs" },
  published: { tone: "plain", text: "will sign" },
  verifying: { tone: "plain", text: "verifies" },
  expired: { tone: "warn", text: "expired" },
} as const;

function keyRow(key: StatusKey, now: number) {
  const { kid, signs, algorithm, state, file, madeAt, verifiesUntil } = key;
  const { tone, text } = STATES[state];
  return [
    signs === "tokens" ? `${algorithm} key` : `${algorithm} key of ${signs}`,
    html`<code>${kid}</code>
      <span class="soft">${file ?? "made at start, lost with the process"}</span>`,
    badge(tone, text),
    html`<span class="when" title="${moment(madeAt)}">${relative(madeAt, now)}</span>`,
    verifiesUntil === undefined ? html`<span class="soft">never</span>` : endOf(verifiesUntil, now),
  ];
}

function endOf(at: number, now: number): Html {
  const tone = at <= now ? "bad-text" : at - now < SOON_MS ? "warn-text" : "";
  return html`<span class="when ${tone}" title="${moment(at)}">${relative(at, now)}</span>`;
}

export function issuersSection({ issuers, now }: Status): Html | undefined {
  if (issuers.length === 0) return undefined;
  const rows = issuers.map(({ issuer, usable, keys, readAt, stale }: StatusIssuer) => [
    issuer,
    !usable ? badge("bad", "no keys") : stale ? badge("warn", "old keys") : badge("good", "usable"),
    keys,
    readAt === undefined
      ? html`<span class="bad-text">never read</span>`
      : html`<span title="${moment(readAt)}">${span(now - readAt)}</span>`,
  ]);
  return section(
    "issuers",
    "Trusted issuers",
    "whose tokens are accepted",
    table(["Issuer", "State", ">Keys", ">Age of the key set"], rows),
  );
}
