import { type Check, single } from "../check-result.ts";
import { authorization, protectedPath, type Target } from "../deployment.ts";
import { forgery, refusedStream, withoutForgery } from "../expectations.ts";
import { forgeryChecks, passageChecks } from "../header-checks.ts";
import type { Field } from "./http2-frames.ts";
import { fieldsOf, HTTP2, onStream, pseudo } from "./http2-requests.ts";

/** Values for `:authority` and `Host`. */
const HOSTS: readonly (readonly [
  name: string,
  hosts: (host: string) => readonly (readonly [name: ":authority" | "host", value: string])[],
])[] = [
  ["other", (host) => [named(host), ["host", "other.example"]]],
  ["other-authority", (host) => [named("other.example"), ["host", host]]],
  ["two", (host) => [named(host), ["host", host], ["host", "other.example"]]],
  ["none", () => []],
  ["empty", () => [named("")]],
  ["list", (host) => [named(`${host}, other.example`)]],
  ["user", (host) => [named(`user@${host}`)]],
  ["path", (host) => [named(`${host}/x`)]],
];

const named = (host: string): readonly [":authority", string] => [":authority", host];

/** Fields that become several, or other ones, if they are written as HTTP/1.1 without a check. */
const DISGUISED: readonly (readonly [
  check: string,
  field: (forged: string, name: string) => Field,
])[] = [
  ["line-end-in-value", (forged, name) => ["x-selftest", `a\r\n${name}: ${forged}`]],
  ["line-feed-in-value", (forged, name) => ["x-selftest", `a\n${name}: ${forged}`]],
  ["nul-in-value", (forged) => ["x-selftest", `a\0${forged}`]],
  ["line-end-in-name", (forged, name) => [`x-a: b\r\n${name}`, forged]],
  ["colon-in-name", (forged, name) => [`${name}:`, forged]],
  ["blank-behind-name", (forged, name) => [`${name} `, forged]],
  ["empty-name", (forged) => ["", forged]],
];

/** Returns checks that clients cannot forge their identity, their address or their host over HTTP/2 either. */
export function http2HeaderChecks(target: Target): Check[] {
  const token = fieldsOf([authorization(target)]);
  const open = (mark: string): Field[] => pseudo(target, protectedPath(target, mark));
  const [identity = "x-selftest"] = target.identityNames;
  const forged = (mark: string, field: (typeof DISGUISED)[number][1]): Field =>
    field(forgery(mark), identity.toLowerCase());
  return [
    ...forgeryChecks(target, HTTP2),
    ...DISGUISED.map(([name, field]) =>
      single(`headers/${name}`, withoutForgery, (mark) =>
        onStream(1, { fields: [...open(mark), ...token, forged(mark, field)] }),
      ),
    ),
    ...passageChecks(target, HTTP2),
    ...HOSTS.map(([name, hosts]) =>
      single(`headers/host-${name}`, refusedStream, (mark) => {
        const given = hosts(target.host);
        const fields = open(mark).flatMap((field) =>
          field[0] === ":authority" ? given.filter(([each]) => each === ":authority") : [field],
        );
        const rest = given.filter(([each]) => each === "host");
        return onStream(1, { fields: [...fields, ...rest, ...token] });
      }),
    ),
  ];
}
