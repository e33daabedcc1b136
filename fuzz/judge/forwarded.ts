import type { Arrival } from "../backend/arrivals.ts";
import type { Standing, Subject } from "../subject/subject.ts";
import { connectionOptions, type Fields, valuesOf } from "../wire/head.ts";
import type { ReadRequest } from "../wire/requests.ts";
import { type Fault, fault } from "./fault.ts";
import { endsHere, folded, IDENTITY_NAMES, METHOD_OVERRIDES, ORIGIN_NAMES } from "./names.ts";
import { isClean, isPublic, isSame, splitTarget } from "./paths.ts";

/** Compares a request that arrived with the one that the client sent. */
export function judgeForwarded(
  { request: got, tunnel }: Arrival,
  sent: ReadRequest,
  client: string,
  subject: Subject,
): Fault[] {
  const standing = standingOf(got, sent, subject);
  const faults = [...judgeTarget(got, sent), ...judgeAuthority(standing, got, subject)];
  if (got.body !== undefined && got.body !== sent.body) {
    faults.push(
      fault("body", `${show(got.body)} arrived for ${show(sent.body ?? "no whole body")}`),
    );
  }
  if (got.switches !== (tunnel !== undefined) && tunnel !== undefined) {
    faults.push(fault("mixed", "switched without being asked"));
  }
  if (subject.keepsContract) {
    faults.push(
      ...judgeOrigin(got, sent, client, subject),
      ...judgeFields(got, sent),
      ...judgeTrailers(got, sent),
    );
  }
  return faults;
}

/** Whether the request has the valid token in the only accepted form. */
export function hasToken({ fields }: ReadRequest, { credentials }: Subject): boolean {
  const [value = "", another] = valuesOf(fields, "authorization");
  const [, token] = /^bearer +(.*)$/is.exec(value) ?? [];
  return another === undefined && token === credentials.valid;
}

function standingOf(got: ReadRequest, sent: ReadRequest, subject: Subject): Standing {
  return { isPublic: isPublic(splitTarget(got.target).path), hasToken: hasToken(sent, subject) };
}

function judgeTarget(got: ReadRequest, sent: ReadRequest): Fault[] {
  const right =
    isSame(got.target, sent.target) &&
    got.method === sent.method &&
    isClean(splitTarget(got.target).path);
  const [arrived, asked] = [got, sent].map(({ method, target }) => `${method} ${show(target)}`);
  return right ? [] : [fault("path", `${arrived} arrived for ${asked}`)];
}

function judgeAuthority(standing: Standing, got: ReadRequest, subject: Subject): Fault[] {
  const faults: Fault[] = [];
  if (!standing.isPublic && !standing.hasToken) {
    faults.push(fault("unauthorised", `${got.method} ${show(got.target)}`));
  }
  const wanted = subject.identity(standing);
  for (const name of IDENTITY_NAMES) {
    const values = got.fields.filter(([each]) => folded(each) === name).map(([, value]) => value);
    const right = wanted.has(name) ? [wanted.get(name)] : [];
    if (values.join("\n") !== right.join("\n")) {
      faults.push(
        fault("forged", `${name}: ${show(values.join(" | "))} instead of ${show(right.join())}`),
      );
    }
  }
  return faults;
}

function judgeOrigin(
  got: ReadRequest,
  sent: ReadRequest,
  client: string,
  { ca }: Subject,
): Fault[] {
  const faults: Fault[] = [];
  const [host = ""] = valuesOf(sent.fields, "host");
  const [scheme, port] = ca === undefined ? ["http", "80"] : ["https", "443"];
  const node = client.includes(":") ? `"[${client}]"` : client;
  const wanted: Readonly<Record<string, string | undefined>> = {
    "x-forwarded-for": client,
    "x-forwarded-proto": scheme,
    // A request in HTTP/1.0 may have no host.
    "x-forwarded-host": host === "" ? undefined : host,
    "x-forwarded-port": /:(\d+)$/.exec(host)?.[1] ?? port,
    "x-real-ip": client,
    forwarded: `for=${node}${host === "" ? "" : `;host="${host}"`};proto=${scheme}`,
  };
  for (const name of ORIGIN_NAMES) {
    const values = got.fields.filter(([each]) => folded(each) === name).map(([, value]) => value);
    if (values.length > 1 || values[0] !== wanted[name]) {
      faults.push(fault("forged", `${name}: ${show(values.join(" | "))}`));
    }
  }
  const ids = got.fields.filter(([each]) => folded(each) === "x-request-id");
  if (ids.length !== 1 || !/^[A-Za-z0-9._-]{1,128}$/.test(ids[0]?.[1] ?? "")) {
    faults.push(fault("field", `x-request-id: ${show(ids.map(([, id]) => id).join(" | "))}`));
  }
  const hosts = valuesOf(got.fields, "host");
  if (host !== "" && hosts.join("\n") !== host)
    faults.push(fault("field", `host: ${hosts.join()}`));
  return faults;
}

/** End-to-end fields must arrive unchanged and in order, and no others. */
function judgeFields(got: ReadRequest, sent: ReadRequest): Fault[] {
  const named = new Set(connectionOptions(sent.fields));
  const wanted = sent.fields.filter(([name]) => !endsHere(name) && !named.has(name.toLowerCase()));
  const passed = got.fields.findLastIndex(isOurName);
  const arrived = got.fields.filter(([name], i) => i !== passed && !endsHere(name));
  const same = got.switches
    ? listed(oneCookie(arrived)).toSorted().join("\n") ===
      listed(oneCookie(wanted)).toSorted().join("\n")
    : arrived.flat().join("\n") === wanted.flat().join("\n");
  const faults: Fault[] = [];
  if (passed === -1) faults.push(fault("field", "no CDN-Loop of ours"));
  if (!same) {
    faults.push(
      fault("field", `${show(arrived.flat().join("|"))} for ${show(wanted.flat().join("|"))}`),
    );
  }
  for (const name of [
    "te",
    "trailer",
    "keep-alive",
    "proxy-authorization",
    "expect",
    "authorization",
    ...METHOD_OVERRIDES,
  ]) {
    const further = got.fields.some(([each]) => folded(each) === name);
    if (further) faults.push(fault("field", `${name} went further`));
  }
  return faults;
}

/** Whether a field has the name that the proxy adds to recognize its own requests (RFC 8586). */
function isOurName([name, value]: Fields[number]): boolean {
  return name.toLowerCase() === "cdn-loop" && /^sallyport-[0-9a-f]+$/.test(value);
}

/** Joins several cookie fields with semicolons (RFC 9113 §8.2.3). */
function oneCookie(fields: Fields): Fields {
  const cookies = valuesOf(fields, "cookie");
  if (cookies.length < 2) return fields;
  const others = fields.filter(([name]) => name.toLowerCase() !== "cookie");
  return [...others, ["cookie", cookies.join("; ").trim()]];
}

function listed(fields: Fields): string[] {
  return fields.map(([name, value]) => `${name.toLowerCase()}: ${value}`);
}

/** Trailers must arrive in order; none may become an identity, a credential or a length. */
function judgeTrailers(got: ReadRequest, sent: ReadRequest): Fault[] {
  const faults: Fault[] = [];
  const left = listed(sent.trailers);
  for (const trailer of listed(got.trailers)) {
    const at = left.indexOf(trailer);
    if (at === -1) faults.push(fault("body", `the trailer ${show(trailer)} arrived`));
    else left.splice(0, at + 1);
  }
  for (const [name] of got.trailers) {
    if (endsHere(name)) faults.push(fault("forged", `the trailer ${name} arrived`));
  }
  return faults;
}

/** Formats text for a report, truncated. */
export function show(text: string): string {
  return JSON.stringify(text.length > 300 ? `${text.slice(0, 300)}…` : text);
}
