import fc from "fast-check";
import { expect, it } from "vitest";
import { SAMPLE_STATUS } from "../../docs/pictures/sample-status.ts";
import type { Status } from "../../src/core/status.ts";
import { html } from "../../src/lib/text/html.ts";
import { renderStatus } from "../../src/server/admin/status/render-status.ts";
import { CONTENT_SECURITY_POLICY } from "../../src/server/admin/status/style.ts";
import { bytes, relative, span } from "../../src/server/admin/status/words.ts";

const HOSTILE = [
  "<script>alert(1)</script>",
  `"><img src=x onerror=alert(1)>`,
  `' onmouseover='alert(1)`,
  "</style><style>*{display:none}",
  "</code></details><iframe src=//evil.example>",
  "&lt;b&gt;",
  "\u202Egnp.exe\u0000\u001b[31m",
];

/** Replaces every string of the status, except the ones that select a CSS class. */
function poisoned(value: unknown, poison: string, key = ""): unknown {
  const kept = ["state", "tone", "outcome", "result"].includes(key);
  if (typeof value === "string") return kept ? value : poison;
  if (Array.isArray(value)) return value.map((each) => poisoned(each, poison, key));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, poisoned(each, poison, name)]),
  );
}

function tagsOf(page: string): string[] {
  return (page.match(/<[^!][^>]*>/g) ?? []).map((tag) => tag.replace(/\s+/g, " "));
}

it.each(HOSTILE)("shows %j as text everywhere", (poison) => {
  const plain = renderStatus(poisoned(SAMPLE_STATUS, "harmless") as Status);
  const page = renderStatus({
    ...(poisoned(SAMPLE_STATUS, poison) as Status),
    minutes: SAMPLE_STATUS.minutes.map((minute) => ({
      ...minute,
      refusals: { [poison]: 1 },
      logins: { [poison]: 1 },
    })),
  });
  expect(page).not.toContain(poison);
  expect(page).not.toMatch(/<(?:script|img|iframe)/i);
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  expect(page).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u202e]/);
  // It must not add or close an element.
  const kinds = (text: string): string[] =>
    [...new Set(tagsOf(text).map((tag) => tag.split(" ")[0] ?? ""))].toSorted();
  expect(kinds(page)).toEqual(kinds(plain));
  for (const tag of tagsOf(page)) expect(tag.replaceAll(/"[^"]*"/g, "")).not.toMatch(/'| on/i);
});

it("escapes every text so that a browser reads it back", () => {
  const unescape = (text: string): string =>
    text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => {
      return { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" }[name] ?? "";
    });
  fc.assert(
    fc.property(fc.string({ unit: "grapheme-ascii" }), (text) => {
      const { text: made } = html`<b title="${text}">${text}</b>`;
      const [, attribute = "", content = ""] =
        /^<b title="([^"<>]*)">([^<>]*)<\/b>$/.exec(made) ?? [];
      expect(unescape(attribute)).toBe(text);
      expect(unescape(content)).toBe(text);
    }),
  );
});

it("allows only its own style", () => {
  expect(CONTENT_SECURITY_POLICY).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/]+=*'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  );
  const page = renderStatus(SAMPLE_STATUS);
  expect(page).not.toMatch(/ style=|<script|<link rel="stylesheet"|@import|url\(/);
  expect(page.match(/<style>/g)).toHaveLength(1);
});

it("has every section, and omits empty ones", () => {
  const page = renderStatus(SAMPLE_STATUS);
  const ids = [...page.matchAll(/<section id="([a-z]+)"/g)].map(([, id]) => id);
  expect(ids).toEqual([
    ...["reasons", "logins", "routes", "upstreams", "dependencies", "keys", "refusals", "reload"],
    "configuration",
  ]);
  for (const text of [
    "3d 4h",
    "1,284,907",
    "ECONNREFUSED",
    "1 of 5 fail",
    "1m 35s",
    "in 6d",
    "1 more with",
  ]) {
    expect(page).toContain(text);
  }
  const small = renderStatus({
    ...SAMPLE_STATUS,
    dependencies: [],
    reload: undefined,
    certificate: undefined,
    refusals: [],
    minutes: SAMPLE_STATUS.minutes.map(({ at }) => ({ at, logins: {}, refusals: {} })),
    workers: { count: 2, alive: 2, answered: 1 },
    ready: false,
    checks: [{ name: "upstreams", passed: false, state: "app ECONNREFUSED" }],
  });
  expect(small).not.toMatch(/id="(?:dependencies|reload)"/);
  for (const text of ["nobody logged in", "nothing was refused", "1 did not answer"]) {
    expect(small).toContain(text);
  }
  expect(small).toContain("not ready: upstreams");
});

it("formats times and sizes for people", () => {
  expect([0, 61_000, 3_723_000, 90_000_000, 9e9, 2e10].map(span)).toEqual([
    "0s",
    "1m 1s",
    "1h 2m",
    "1d 1h",
    "104d",
    "231d",
  ]);
  expect([relative(5_000, 0), relative(0, 5_000)]).toEqual(["in 5s", "5s ago"]);
  expect([0, 1_023, 1_536, 160 * 1024 ** 2].map(bytes)).toEqual([
    "0 B",
    "1023 B",
    "1.5 KiB",
    "160 MiB",
  ]);
});
