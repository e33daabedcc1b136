import type { Configuration } from "../../config/schema.ts";
import { errorRow, GateError } from "../../core/errors.ts";
import type { AskedRequest, ExplainedVerdict, Explanation } from "../../core/explanation.ts";
import type { Gate } from "../../core/gate.ts";
import type { GateRequest } from "../../core/gate-request.ts";
import type { Identity } from "../../core/identity.ts";
import type { Permit } from "../../core/permit.ts";
import type { TokenRefusal, TokenVerifier } from "../../core/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import { networks } from "../../lib/networks.ts";
import { Admission } from "../../server/admission.ts";
import { bearerToken } from "../../server/bearer.ts";
import { createIntake } from "../../server/intake.ts";
import { LOGIN_BODY_BYTES, requireJson } from "../../server/login-request.ts";
import { beginProgress } from "../../server/progress.ts";
import { type ReadHead, readHead } from "../../server/read-head.ts";
import { refuseOtherUpgrades } from "../../server/upgrade-request.ts";
import type { SigningKeys } from "../../tokens/signing-keys.ts";
import { routesOf } from "../from-configuration.ts";
import { openGate } from "../gate.ts";
import { explainBackend } from "./backend.ts";
import { refusalWords } from "./refusal-words.ts";
import { explainRoutes } from "./routes.ts";
import { NO_LOGINS, SILENT_LOG, SILENT_OBSERVER } from "./silent.ts";
import { explainToken, verdictOn } from "./token.ts";
import type { TokenSurroundings } from "./token-words.ts";

export interface ExplainerOptions {
  readonly configuration: Configuration;
  readonly keys: SigningKeys;
  readonly clock: Clock;
}

/**
 * Walks a request through a gate as the pipeline does, and tells what was decided on the way. Nothing is sent to a backend.
 *
 * @param gate made from the configuration; one that counts nothing.
 */
export function explain(
  options: ExplainerOptions,
  gate: Gate,
  asked: AskedRequest,
): Promise<Explanation> {
  return new Walk(options, gate).explain(asked);
}

/**
 * The same with a gate of its own: the keys of trusted issuers are fetched anew.
 *
 * @throws ConfigError when a file that the configuration names is broken.
 */
export async function explainAlone(
  options: ExplainerOptions,
  asked: AskedRequest,
): Promise<Explanation> {
  const { configuration, keys, clock } = options;
  const { gate, close } = openGate({
    ...{ configuration, keys, clock, version: "0.0.0" },
    ...{ logins: NO_LOGINS, log: SILENT_LOG, observer: SILENT_OBSERVER },
  });
  try {
    return await explain(options, gate, asked);
  } finally {
    await close();
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

type Conclusion = Pick<ExplainedVerdict, "outcome" | "status" | "reason"> &
  Partial<Pick<ExplainedVerdict, "detail">>;

/** The way of one request; what has been found out so far is kept when something refuses it. */
class Walk {
  readonly #options: ExplainerOptions;
  readonly #gate: Gate;
  readonly #found: Mutable<Omit<Explanation, "verdict">>;
  readonly #admission = new Admission(SILENT_OBSERVER);
  readonly #progress = beginProgress(0, 0);

  constructor(options: ExplainerOptions, gate: Gate) {
    this.#options = options;
    this.#gate = { ...gate, tokens: { verify: (token) => this.#verify(gate.tokens, token) } };
    this.#found = {
      request: undefined,
      routes: explainRoutes(routesOf(options.configuration), undefined),
      token: undefined,
      groups: undefined,
      backend: undefined,
      notes: [],
    };
  }

  async explain(asked: AskedRequest): Promise<Explanation> {
    try {
      return this.#conclude(await this.#walk(asked));
    } catch (error) {
      if (!(error instanceof GateError)) throw error;
      const { status } = errorRow(error.code);
      const { limits } = this.#options.configuration.server;
      const detail = refusalWords(error, asked, limits);
      const reason = error.reason ?? error.code;
      return this.#conclude({ outcome: "refused", status, reason, detail });
    }
  }

  #conclude(conclusion: Conclusion): Explanation {
    const { route, auth, reason } = this.#progress;
    const wouldDeny = auth === "would_deny" ? reason : undefined;
    return { verdict: { detail: undefined, ...conclusion, route, wouldDeny }, ...this.#found };
  }

  async #walk(asked: AskedRequest): Promise<Conclusion> {
    const { server } = this.#options.configuration;
    for (const note of connectionNotes(server.tls, asked)) this.#note(note);
    const read = await readHead(asked, server.limits.headerBytes);
    const intake = createIntake(networks(server.trustedProxies), server.limits.headers);
    const request = intake(read.message, 1);
    this.#found.request = {
      ...{ method: request.method, host: request.host, path: request.path },
      ...{ matchPath: request.matchPath, client: request.client, peer: request.peer },
      ...{ peerTrusted: request.peerTrusted, secure: request.secure },
      protocol: read.upgrade ? "websocket" : "http",
    };
    const endpoint = this.#gate.endpoints.get(request.matchPath);
    if (endpoint === undefined) return this.#pass(request, read);
    if (read.upgrade) throw new GateError("upgrade_unsupported");
    this.#progress.route = endpoint.name;
    if (!endpoint.methods.includes(request.method)) throw new GateError("method_not_allowed");
    if (endpoint.auth === "required") this.#lookForToken(request);
    await this.#admission.callerFor(endpoint.auth, this.#gate, request, this.#progress);
    if (endpoint.name === "authenticate") this.#lookAtLogin(request, read);
    return { outcome: "answered", status: undefined, reason: undefined };
  }

  /** What can be told of a login without its body. */
  #lookAtLogin({ bodyLength }: GateRequest, { message }: ReadHead): void {
    requireJson(message.headersDistinct);
    if (bodyLength > LOGIN_BODY_BYTES) throw new GateError("login_too_large");
    this.#note("the body decides, which is not looked at here: the name, the password");
  }

  async #pass(request: GateRequest, { message, upgrade }: ReadHead): Promise<Conclusion> {
    const { configuration } = this.#options;
    const route = this.#gate.findRoute(request);
    this.#found.routes = explainRoutes(routesOf(configuration), request);
    if (route !== undefined) this.#progress.route = route.name;
    if (route?.rateLimit !== undefined) this.#note("the limit of requests is not counted here");
    if (route?.mode === "monitor") this.#note("the route is only watched: nobody is refused");
    if (route?.auth !== "none") this.#lookForToken(request);
    const groups = route?.groups;
    if (groups !== undefined) this.#found.groups = { any: groups.any, all: groups.all, held: [] };
    const permit = await this.#admission.admit(this.#gate, request, route, this.#progress);
    if (upgrade) refuseOtherUpgrades(request, message);
    this.#forward(permit, upgrade);
    return { outcome: "forwarded", status: undefined, reason: undefined };
  }

  #forward(permit: Permit, upgrade: boolean): void {
    const backend = explainBackend(this.#options.configuration, permit, upgrade);
    this.#found.backend = backend;
    const most = backend?.limits.bodyBytes ?? Infinity;
    if (permit.request.bodyLength > most && !upgrade) {
      throw new GateError("body_too_large", { reason: "body_too_large" });
    }
  }

  /** What keeps a token from being looked at; the admission will find the same. */
  #lookForToken(request: GateRequest): void {
    try {
      bearerToken(request);
    } catch (error) {
      if (!(error instanceof GateError)) throw error;
      this.#found.token = explainToken("", error, this.#surroundings());
    }
  }

  /** The gate's verifier, and what it said. */
  async #verify(tokens: TokenVerifier, token: string): Promise<Identity | TokenRefusal> {
    const verdict = await verdictOn(token, tokens);
    this.#found.token = explainToken(token, verdict, this.#surroundings());
    const { groups } = this.#found;
    if (groups !== undefined) {
      this.#found.groups = { ...groups, held: this.#found.token.groups };
    }
    if (verdict instanceof GateError) throw verdict;
    return verdict;
  }

  #surroundings(): TokenSurroundings {
    const { configuration, keys, clock } = this.#options;
    return { configuration, keys, nowMs: clock.now() };
  }

  #note(text: string): void {
    this.#found.notes = [...this.#found.notes, text];
  }
}

/** What keeps a request from arriving at all. */
function connectionNotes(
  tls: Configuration["server"]["tls"],
  { secure }: AskedRequest,
): readonly string[] {
  if (tls.mode === "off") return [];
  if (!secure) return ["the listener speaks TLS: over plain http there is no answer"];
  return tls.clientCertificates?.mode === "required"
    ? ["without a client certificate there is no connection, and the client gets no answer"]
    : [];
}
