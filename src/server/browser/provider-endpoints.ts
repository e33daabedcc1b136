import { randomInt } from "node:crypto";
import { SIGN_IN_SECONDS, type SignIns } from "../../core/login.ts";
import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import { signInCookies } from "../../core/request/token-place.ts";
import { cookieValues, headerValues } from "../../lib/http/header-values.ts";
import { checkLoginHead, FORM_TYPE, readLoginBody } from "../endpoints/authenticate.ts";
import type { ClientReading } from "../listener/reading/fair-reading.ts";
import { originOf } from "../request/own-origin.ts";
import type { Answer, Endpoint, EndpointCall } from "../request/gate.ts";
import { cookieField, seeOther, successAnswer } from "../request/write-answer.ts";

/** A provider, as the pages show it. */
export interface OfferedProvider {
  readonly name: string;
  /** The text on the button. */
  readonly label: string;
  /** Whether navigations without a session go there at once. */
  readonly automatic: boolean;
  /** Whether signing out ends the session there, too. */
  readonly signsOut: boolean;
}

export interface ProviderEndpointsOptions {
  /** The prefix of our own addresses. */
  readonly ownPath: string;
  /** The name of the cookie of sessions. */
  readonly cookie: string;
  readonly providers: readonly OfferedProvider[];
  readonly signIns: SignIns;
  readonly reading: ClientReading;
  /** Whether people may come back from a provider to this host. */
  isOwnHost(host: string): boolean;
  /** Returns a path of this host; `/` for anything else. */
  destination(to: string | null): string;
  /** The fields that begin a session. @throws GateError `forbidden` if browsers would drop it. */
  sessionOf(token: string): readonly string[];
}

/** The name of the endpoints that lead to a provider and back. */
export const PROVIDER_SIGN_IN = "sign_in_provider";

/** Longer ways to the page that a person wanted do not fit into the cookie of a sign-in: they lead to `/`. */
const LONGEST_TO = 256;
/**
 * Where a browser keeps sign-ins that it has begun, each in a cookie of its own: tabs do not share one. There are so few that all of them
 * fit into the head of a request beside a session, no matter who makes a browser begin sign-ins.
 */
const SLOTS = ["0", "1", "2", "3"];
/** Those of sign-ins that another site may have begun: it cannot take the place of one that the person has begun here. */
const FOREIGN_SLOTS = ["4", "5", "6", "7"];

/** Returns the endpoints of all providers, by path: to the provider, back from it, and the end of sessions by the provider. */
export function providerEndpoints(options: ProviderEndpointsOptions): Map<string, Endpoint> {
  const { ownPath } = options;
  return new Map(
    options.providers.flatMap(({ name }): (readonly [string, Endpoint])[] => {
      const path = `${ownPath}/login/${name}`;
      const endpoint = { name: PROVIDER_SIGN_IN, methods: ["GET"], auth: "none" } as const;
      return [
        [path, { ...endpoint, answer: (call) => begin(options, name, call) }],
        [`${path}/callback`, { ...endpoint, answer: (call) => finish(options, name, call) }],
        [
          `${path}/backchannel`,
          {
            name: "provider_logout",
            methods: ["POST"],
            auth: "none",
            checkHead: (request, incoming) => checkLoginHead(request, incoming, FORM_TYPE),
            answer: (call) => endSessions(options, name, call),
          },
        ],
      ];
    }),
  );
}

async function begin(
  options: ProviderEndpointsOptions,
  name: string,
  { request, incoming }: EndpointCall,
): Promise<Answer> {
  const { cookie, signIns, reading, destination } = options;
  reading.chargeLogin(incoming.socket);
  const wanted = destination(new URLSearchParams(request.query).get("to"));
  const to = wanted.length > LONGEST_TO ? "/" : wanted;
  const slot = freeSlot(request, cookie);
  const returnTo = callbackOf(request, name, options);
  const { location, sealed } = await signIns.beginSignIn(name, { returnTo, to, slot });
  return seeOther(location, request, cookieField(nameFor(cookie, slot), sealed, SIGN_IN_SECONDS));
}

async function finish(
  options: ProviderEndpointsOptions,
  name: string,
  { request, incoming }: EndpointCall,
): Promise<Answer> {
  const { cookie, signIns, reading, sessionOf } = options;
  reading.chargeLogin(incoming.socket);
  const state = new URLSearchParams(request.query).get("state") ?? "";
  const pending = nameFor(cookie, state.slice(0, 1));
  const kept = headerValues(request.rawHeaders, "cookie").flatMap((field) =>
    cookieValues(field, pending),
  );
  const url = callbackOf(request, name, options) + request.query;
  const sealed = kept.length === 1 ? kept[0] : undefined;
  const { network } = request;
  const { token, to } = await signIns.finishSignIn(name, { url, sealed, network });
  return seeOther(to, request, [...sessionOf(token), ...cookieField(pending, "", 0)]);
}

async function endSessions(
  { signIns, reading }: ProviderEndpointsOptions,
  name: string,
  call: EndpointCall,
): Promise<Answer> {
  const { request, incoming } = call;
  reading.chargeLogin(incoming.socket);
  const fields = new URLSearchParams((await readLoginBody(call)).toString("utf8"));
  const [token = "", another] = fields.getAll("logout_token");
  if (token === "" || another !== undefined) {
    throw new GateError("sign_in_failed", { reason: "sign_in_invalid" });
  }
  await signIns.endSessions(name, token);
  return successAnswer(request, "Logged out");
}

/** Returns the address to which a provider sends browsers back. @throws GateError `sign_in_failed` at a host that is not ours. */
function callbackOf(
  request: GateRequest,
  name: string,
  { ownPath, isOwnHost }: ProviderEndpointsOptions,
): string {
  const origin = originOf(request);
  if (origin === undefined || !isOwnHost(request.host)) {
    const message = "Nobody signs in at this host";
    throw new GateError("sign_in_failed", { message, reason: "sign_in_host" });
  }
  return `${origin}${ownPath}/login/${name}/callback`;
}

/** The name of the cookie of one sign-in. */
function nameFor(cookie: string, slot: string): string {
  return signInCookies(cookie) + slot;
}

/** Returns a slot without a sign-in, else any: at random, since tabs may begin at the same moment. */
function freeSlot({ rawHeaders }: GateRequest, cookie: string): string {
  const fields = headerValues(rawHeaders, "cookie");
  const isForeign = headerValues(rawHeaders, "sec-fetch-site").some((site) =>
    ["cross-site", "same-site"].includes(site),
  );
  const slots = isForeign ? FOREIGN_SLOTS : SLOTS;
  const free = slots.filter(
    (slot) => !fields.some((field) => cookieValues(field, nameFor(cookie, slot)).length > 0),
  );
  const among = free.length === 0 ? slots : free;
  return among[randomInt(among.length)] ?? "0";
}
