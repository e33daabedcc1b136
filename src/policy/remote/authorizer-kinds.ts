import {
  API_SERVER_HINT,
  type RemoteCheckObserver,
  remoteProbe,
  type RemoteProbe,
} from "../../core/remote-check.ts";
import type { Clock } from "../../lib/clock.ts";
import { keysOf } from "../../lib/keys-of.ts";
import type { Configuration } from "../../config/configuration.ts";
import { RemoteAuthorizer } from "./remote-authorizer.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import { RemoteClient } from "../../lib/http/remote-client.ts";
import type { RemoteAnswer } from "../../lib/http/remote-request.ts";
import { RemoteError } from "../../lib/text/error-code.ts";
import { isJsonObject, jsonObjectIn } from "../../lib/text/strict-json.ts";
import { requestTemplate } from "./request-template.ts";

/** The maximum size of a response body, in bytes. */
const LARGEST_ANSWER = 65_536;

/** Any HTTP server, such as Open Policy Agent. 2xx allows; 4xx denies, except 408 and 429; everything else counts as unavailable. */
const http: AuthorizerKind<Settings["http"]> = {
  connections: 32,
  server: ({ url }) => url,
  path: "",
  hint: "does the server accept POST at this URL, with the body that docs/reference/configuration.md describes?",
  /** The path is the one that routes are matched against. The query is not sent, since it may contain secrets. */
  questionsOf: () => (request, identity) => {
    const { method, matchPath: path, host, client } = request;
    const { subject, groups, issuer, scopes, claims } = identity;
    const caller = { subject, groups, issuer, scopes, claims: Object.fromEntries(claims ?? []) };
    return [JSON.stringify({ method, path, host, client, ...caller })];
  },
  testQuestion(nobody) {
    const caller = { subject: nobody, groups: [], issuer: "", scopes: [], claims: {} };
    return JSON.stringify({ method: "GET", path: "/", host: "", client: "", ...caller });
  },
  isAllowed({ status }) {
    if (status >= 200 && status < 300) return true;
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) return false;
    throw new RemoteError(`status ${status}`);
  },
};

/** The Kubernetes verbs for HTTP methods. Any other method needs the permission for `*`, as with kube-rbac-proxy. */
const VERBS: Readonly<Record<string, string>> = {
  GET: "get",
  HEAD: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** The RBAC of Kubernetes, or another authorizer of its API server. */
const subjectAccessReview: AuthorizerKind<Settings["subjectAccessReview"]> = {
  connections: 16,
  server: ({ apiServer }) => apiServer,
  path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
  hint: API_SERVER_HINT,
  questionsOf({ issuers, resource }) {
    const rendered = resource && requestTemplate(resource);
    return (request, { subject: user, groups, issuer }) => {
      // The same name from another issuer belongs to somebody else.
      if (issuers?.includes(issuer) !== true) return undefined;
      const verb = VERBS[request.method] ?? "*";
      const asked =
        rendered === undefined
          ? [{ nonResourceAttributes: { path: request.matchPath, verb } }]
          : rendered(request)?.map((resourceAttributes) => ({
              resourceAttributes: { ...resourceAttributes, verb },
            }));
      return asked?.map((attributes) => review({ user, groups, ...attributes }));
    };
  },
  testQuestion: (nobody) =>
    review({ user: nobody, nonResourceAttributes: { path: "/", verb: "get" } }),
  isAllowed({ status, text }) {
    if (status !== 200 && status !== 201) throw new RemoteError(`status ${status}`);
    const said = jsonObjectIn(text)?.["status"];
    if (isJsonObject(said) && typeof said["allowed"] === "boolean") {
      return said["allowed"] && said["denied"] !== true;
    }
    throw new RemoteError("the answer is not a SubjectAccessReview");
  },
  complete: ({ issuers }, clusterIssuers) => ({ issuers: issuers ?? clusterIssuers }),
};

function review(spec: object): string {
  const api = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview" };
  return JSON.stringify({ ...api, spec });
}

/** The values of `kind` in an entry of `authorization`. The settings of each kind are in `config/sections/authorization-section.ts`. */
const KINDS: { readonly [Kind in AuthorizerKindName]: AuthorizerKind<Settings[Kind]> } = {
  subjectAccessReview,
  http,
};

type Settings = { [Each in Configuration["authorization"][string] as Each["kind"]]: Each };

export type AuthorizerKindName = keyof Settings;

export const AUTHORIZERS: readonly AuthorizerKindName[] = keysOf(KINDS);

/** An entry of `authorization`. */
export type AuthorizationSettings<Kind extends AuthorizerKindName = AuthorizerKindName> = {
  [Each in Kind]: { readonly kind: Each } & Settings[Each];
}[Kind];

/** Opens one entry of `authorization`. Close it after its last request. */
export function openAuthorizer<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
  clock: Clock,
  observer: RemoteCheckObserver,
): RemoteAuthorizer {
  const { timeout, cache, staleFor, onError } = { staleFor: 0, ...settings };
  const client = clientOf(settings);
  return new RemoteAuthorizer({ client, timeout, cache, staleFor, onError, clock, observer });
}

function clientOf<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
): AuthorizationClient {
  const { kind, caFile, tokenFile } = settings;
  const { connections, server, path, questionsOf, isAllowed } = KINDS[kind];
  const url = path === "" ? server(settings) : `${server(settings).replace(/\/$/, "")}${path}`;
  const client = new RemoteClient({ caFile, tokenFile, connections, maxBytes: LARGEST_ANSWER });
  return {
    connections,
    questions: questionsOf(settings),
    ask: async (question, signal) => isAllowed(await client.postJson(url, question, signal)),
    close: () => client.close(),
  };
}

/** Completes settings by what follows from the rest of the configuration: see `AuthorizerKind`. */
export function completeAuthorizer<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
  clusterIssuers: readonly string[],
): AuthorizationSettings<Kind> {
  return { ...settings, ...KINDS[settings.kind].complete?.(settings, clusterIssuers) };
}

/** Returns a test question for `sallyport doctor`. @param nobody a caller to whom the server must say no. */
export function authorizerProbe<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
  nobody: string,
): RemoteProbe {
  const { server, hint, testQuestion } = KINDS[settings.kind];
  const about = { url: server(settings), hint };
  return remoteProbe(about, () => clientOf(settings), testQuestion(nobody));
}

/** A kind of authorization server: the values of `kind` in an entry of `authorization`. */
interface AuthorizerKind<Settings> {
  /** The maximum number of connections to a server. */
  readonly connections: number;
  /** Returns the server's URL. */
  server(settings: Settings): string;
  /** Where it is asked, below that URL; empty for the URL itself. */
  readonly path: string;
  /** What to look at if the server does not answer, for `sallyport doctor`. */
  readonly hint: string;
  questionsOf(settings: Settings): AuthorizationClient["questions"];
  /** Returns a test question for `sallyport doctor`. @param nobody a caller to whom the server must say no. */
  testQuestion(nobody: string): string;
  /** @throws RemoteError if it is no answer to a question. */
  isAllowed(answer: RemoteAnswer): boolean;
  /**
   * Returns settings that follow from the rest of the configuration.
   *
   * @param clusterIssuers the issuers whose subjects are users of the Kubernetes cluster.
   */
  complete?(settings: Settings, clusterIssuers: readonly string[]): Partial<Settings>;
}

/** Asks an authorization server. */
export interface AuthorizationClient {
  readonly connections: number;
  /**
   * Returns the questions about a request, as the texts to send. The server must allow all of them. Returns undefined
   * if the caller is refused without a question.
   */
  questions(request: GateRequest, identity: Identity): readonly string[] | undefined;
  /** Sends one question. @throws RemoteError, or the system's error. */
  ask(question: string, signal: AbortSignal): Promise<boolean>;
  close(): void;
}
