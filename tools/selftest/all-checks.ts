import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  type Arrival,
  type Attempt,
  type Check,
  type Judgement,
  type Observed,
  type Result,
  single,
} from "./check-result.ts";
import { exchange, type Exchanged, HTTP1, type Peer } from "./raw-exchange.ts";
import { alsoRefusedBy5xx, arrives, fail, isRefusal, pass, skip } from "./expectations.ts";
import { tokenParts } from "./forgeries.ts";
import { exchangeHttp2, offersHttp2 } from "./http2/framed-session.ts";
import { http2FramingChecks } from "./http2/http2-framing-checks.ts";
import { http2HeaderChecks } from "./http2/http2-header-checks.ts";
import { HTTP2 } from "./http2/http2-requests.ts";
import { framingChecks } from "./framing-checks.ts";
import { headerChecks } from "./header-checks.ts";
import { brokenAuthority, pathChecks } from "./path-checks.ts";
import { authorization, protectedPath, type Target } from "./deployment.ts";
import { tokenChecks } from "./token-checks.ts";
import type { Witness } from "./answers.ts";

type Protocol = Check["protocol"];

/** The time to wait for bytes on their way from the deployment to its backend, in milliseconds. */
const ON_THE_WAY_MS = 10;
const TOO_MANY = 429;

/** Runs checks against one deployment, one connection at a time. */
class Run {
  readonly #peer: Peer;
  readonly #witness: Witness;
  readonly #id = randomBytes(6).toString("hex");
  #count = 0;
  /** The status of a valid request. */
  #validStatus = 0;
  #serves = true;

  constructor(peer: Peer, witness: Witness) {
    this.#peer = peer;
    this.#witness = witness;
  }

  /** Whether a valid request was still answered after the last check. */
  get serves(): boolean {
    return this.#serves;
  }

  /**
   * Sends one valid request. Unless it succeeds, the refusals of the attacks prove nothing.
   *
   * @returns the result, and the request as it reached the backend, if known.
   */
  async begin(target: Target): Promise<{ result: Result; arrival: Arrival | undefined }> {
    const { observed, mark } = await this.#valid(target, undefined);
    const [first] = observed.answers;
    const arrived = this.#witness.arrivals(mark, observed.answers);
    this.#validStatus = first?.status ?? 0;
    const sight = this.#judgeBeginning(observed, arrived);
    return { result: named("tokens/valid", sight), arrival: arrived?.[0] };
  }

  #judgeBeginning(observed: Observed, arrived: readonly Arrival[] | undefined): Judgement {
    const [first] = observed.answers;
    if (observed.end === "unreachable") return fail(`cannot connect: ${observed.error}`);
    if (first === undefined) return fail("no answer");
    const { status } = first;
    if ([401, 403, TOO_MANY].includes(status) || isRefusal(status) || status >= 500) {
      return fail(`${status} for a valid request`);
    }
    if (arrived !== undefined && arrived.length !== 1) {
      return fail(`${status}, but it reached the backend ${arrived.length} times`);
    }
    return this.#witness.blind || arrived !== undefined
      ? pass(`${status}`)
      : fail(`${status}, but no echo in the format that --help describes`);
  }

  /** Runs one check: all its attempts, then a valid request, which must get the usual response. */
  async check(target: Target, check: Check): Promise<Result> {
    if (check.skip !== undefined) return named(check.name, skip(check.skip));
    this.#witness.forget();
    const unreadable = this.#witness.unreadable();
    const tried: { each: Attempt; mark: string; observed: Observed }[] = [];
    for (const each of check.tries) {
      const mark = this.#mark();
      const observed = await this.#attack(check, each.bytes(mark), each.methods);
      tried.push({ each, mark, observed });
    }
    const alive = await this.#stillServes(target, check.protocol);
    // If nothing has arrived, the attempts were refused, and nothing can arrive later.
    const reached = tried.some(({ mark }) => this.#witness.arrivals(mark, [])?.length);
    if (reached) await delay(ON_THE_WAY_MS);
    const sights = tried.map(({ each, mark, observed }) => {
      const { answers } = observed;
      const arrived = this.#witness.arrivals(mark, answers);
      return { what: each.what, sight: judge(check, { ...observed, arrived }, mark) };
    });
    if (this.#witness.unreadable() > unreadable) {
      sights.push({ what: "the backend", sight: fail("the backend got bytes that are not HTTP") });
    }
    const together = summary(sights);
    return named(check.name, together.verdict === "FAIL" ? together : (alive ?? together));
  }

  /** Returns undefined if a valid request still gets its usual response. */
  async #stillServes(target: Target, protocol: Protocol): Promise<Judgement | undefined> {
    const { observed, mark } = await this.#valid(target, protocol);
    const [first] = observed.answers;
    this.#serves = first !== undefined;
    if (first === undefined) {
      return fail(`afterwards a valid request got no answer: ${observed.error ?? observed.end}`);
    }
    if (first.status === TOO_MANY) return skip("429: a rate limit prevents the check");
    if (first.status !== this.#validStatus) {
      return fail(`afterwards a valid request got ${first.status}, not ${this.#validStatus}`);
    }
    const own = this.#witness.blind || first.body.includes(mark);
    return own ? undefined : fail("afterwards a valid request got the response to another request");
  }

  async #valid(target: Target, protocol: Protocol): Promise<{ observed: Observed; mark: string }> {
    const mark = this.#mark();
    const { get } = protocol === "http2" ? HTTP2 : HTTP1;
    const bytes = get(target, protectedPath(target, mark, "valid"), [authorization(target)]);
    const exchanged = await this.#exchange(bytes, ["GET"], protocol);
    return { mark, observed: { ...exchanged, arrived: undefined } };
  }

  async #attack(
    { expectation, protocol }: Check,
    bytes: string,
    methods: readonly string[] = ["GET"],
  ): Promise<Observed> {
    const exchanged = expectation.close
      ? // After a refusal, waits for the end of the connection. Any other response fails at once.
        await exchange(this.#peer, bytes, methods, (answers) =>
          answers.some(({ status }) => !isRefusal(status)),
        )
      : await this.#exchange(bytes, methods, protocol);
    return { ...exchanged, arrived: undefined };
  }

  #exchange(bytes: string, methods: readonly string[], protocol: Protocol): Promise<Exchanged> {
    return protocol === "http2"
      ? exchangeHttp2(this.#peer, bytes, methods)
      : exchange(this.#peer, bytes, methods);
  }

  /** Returns a new mark. All have the same length, so that none is a prefix of another. */
  #mark(): string {
    this.#count += 1;
    return `${this.#id}${this.#count.toString(16).padStart(4, "0")}`;
  }
}

function judge({ expectation }: Check, observed: Observed, mark: string): Judgement {
  if (observed.end === "unreachable") return fail(`cannot connect: ${observed.error}`);
  if (observed.answers.some(({ status }) => status === TOO_MANY)) {
    return skip("429: a rate limit prevents the check");
  }
  return expectation.judge(observed, mark);
}

function summary(
  sights: readonly { readonly what: string; readonly sight: Judgement }[],
): Judgement {
  const worst =
    sights.find(({ sight }) => sight.verdict === "FAIL") ??
    sights.find(({ sight }) => sight.verdict === "SKIP");
  if (worst !== undefined) {
    const { verdict, seen } = worst.sight;
    return { verdict, seen: sights.length === 1 ? seen : `${worst.what}: ${seen}` };
  }
  const kinds = [...new Set(sights.map(({ sight }) => sight.seen))].join(" or ");
  return pass(sights.length === 1 ? kinds : `${sights.length} tries: ${kinds}`);
}

function named(name: string, { verdict, seen }: Judgement): Result {
  return { name, class: name.slice(0, name.indexOf("/")), verdict, seen };
}

/**
 * Runs all checks and reports each result as it becomes known. If the deployment no longer answers a valid request, the
 * remaining checks are skipped.
 */
export async function runAllChecks(
  peer: Peer,
  aim: Omit<Target, "seenIdentity">,
  witness: Witness,
  report: (result: Result) => void,
): Promise<void> {
  const run = new Run(peer, witness);
  const first: Target = { ...aim, seenIdentity: [] };
  const { result, arrival } = await run.begin(first);
  report(result);

  const subject = tokenParts(aim.token)?.claims["sub"];
  const seenIdentity = (arrival?.fields ?? [])
    .filter(([, value]) => value === subject)
    .map(([name]) => name);
  const known = new Set(aim.identityNames.map((name) => name.toLowerCase()));
  const unknown = seenIdentity.filter((name) => !known.has(name.toLowerCase()));
  const identityNames = [...aim.identityNames, ...unknown];
  const target: Target = { ...aim, identityNames, seenIdentity };

  let why = result.verdict === "FAIL" ? "a valid request did not succeed" : undefined;
  for (const check of allChecks(target, await http2Of(peer))) {
    if (why === undefined) {
      report(await run.check(target, check));
      if (!run.serves) why = `the deployment has not answered since ${check.name}`;
    } else {
      report(named(check.name, skip(why)));
    }
  }
}

type Http2 = "by ALPN" | "by prior knowledge" | "not offered";

async function http2Of(peer: Peer): Promise<Http2> {
  if (!(await offersHttp2(peer))) return "not offered";
  return peer.tls === undefined ? "by prior knowledge" : "by ALPN";
}

/**
 * What could pass another proxy without permission: paths without a token, identities, and tokens. Few proxies know WebSockets over
 * HTTP/2.
 */
const BY_PERMISSION =
  /^(?!http2\/.*websocket$)(?:http2\/)?(?:path[/-](?:public|suffix)|headers[/-]identity|tokens[/-])/;

function allChecks(target: Target, http2: Http2): Check[] {
  const all = checksOf(target, http2);
  if (!target.asks) return all;
  return all
    .filter(({ name }) => BY_PERMISSION.test(name))
    .map((check) => ({ ...check, expectation: alsoRefusedBy5xx(check.expectation) }));
}

function checksOf(target: Target, http2: Http2): Check[] {
  return [
    ...framingChecks(target, http2 === "by prior knowledge"),
    ...pathChecks(target),
    ...headerChecks(target),
    ...tokenChecks(target),
    ...http2Checks(target, http2 !== "not offered").map(asHttp2),
    brokenAuthority(target),
  ];
}

/** Returns the attacks over HTTP/2: those shared with HTTP/1.1, and those that use frames and fields of HTTP/2. */
function http2Checks(target: Target, offered: boolean): Check[] {
  const valid = single(
    "tokens/valid",
    arrives(() => pass("arrived once")),
    (mark) => HTTP2.get(target, protectedPath(target, mark), [authorization(target)]),
    offered ? undefined : "the deployment does not offer HTTP/2",
  );
  if (!offered) return [valid];
  return [
    valid,
    ...http2FramingChecks(target),
    ...pathChecks(target, HTTP2),
    ...http2HeaderChecks(target),
    ...tokenChecks(target, HTTP2),
    brokenAuthority(target, HTTP2),
  ];
}

function asHttp2(check: Check): Check {
  return { ...check, protocol: "http2", name: `http2/${check.name.replace("/", "-")}` };
}
