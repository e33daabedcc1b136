import { API_SERVER_HINT } from "../../core/remote-check.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import { RereadFile } from "../../lib/files/watched-file.ts";
import { RemoteClient } from "../../lib/http/remote-client.ts";
import { RemoteError } from "../../lib/text/error-code.ts";
import { isJsonObject, parseStrictJson } from "../../lib/text/strict-json.ts";
import type { AuthorizationClient, AuthorizerKind } from "./authorizer-kinds.ts";
import { RequestTemplate } from "./request-template.ts";

interface SubjectAccessReviewSettings {
  readonly apiServer: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
  /** The issuers whose subjects and groups are those of the cluster. Callers of other issuers are refused. */
  readonly issuers?: readonly string[];
  /** The attributes of a resource, with references to the request. Without them, the review is about the path. */
  readonly resource?: Readonly<Record<string, string>>;
}

const PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const CONNECTIONS = 16;
const LARGEST_ANSWER = 65_536;

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
export const subjectAccessReview: AuthorizerKind<SubjectAccessReviewSettings> = {
  open: (settings) => new SubjectAccessReview(settings),
  complete: ({ issuers }, clusterIssuers) => ({ issuers: issuers ?? clusterIssuers }),
  probe: ({ apiServer: url }, nobody) => ({
    url,
    question: questionOf({ user: nobody, nonResourceAttributes: { path: "/", verb: "get" } }),
    hint: API_SERVER_HINT,
  }),
};

/** Asks the Kubernetes API server whether its RBAC (or another authorizer) allows a request. */
class SubjectAccessReview implements AuthorizationClient {
  readonly connections = CONNECTIONS;
  readonly #settings: SubjectAccessReviewSettings;
  readonly #client: RemoteClient;
  readonly #token: RereadFile | undefined;
  readonly #resource: RequestTemplate | undefined;

  constructor(settings: SubjectAccessReviewSettings) {
    const { caFile, tokenFile, resource } = settings;
    this.#settings = settings;
    this.#client = new RemoteClient({
      caFile,
      connections: this.connections,
      maxBytes: LARGEST_ANSWER,
    });
    this.#token = tokenFile === undefined ? undefined : new RereadFile(tokenFile);
    this.#resource = resource && new RequestTemplate(resource);
  }

  questions(request: GateRequest, identity: Identity): readonly string[] | undefined {
    const { subject: user, groups, issuer } = identity;
    // The same name from another issuer belongs to somebody else.
    if (this.#settings.issuers?.includes(issuer) !== true) return undefined;
    const verb = VERBS[request.method] ?? "*";
    const asked =
      this.#resource === undefined
        ? [{ nonResourceAttributes: { path: request.matchPath, verb } }]
        : this.#resource.render(request)?.map((resourceAttributes) => ({
            resourceAttributes: { ...resourceAttributes, verb },
          }));
    return asked?.map((attributes) => questionOf({ user, groups, ...attributes }));
  }

  async ask(body: string, signal: AbortSignal): Promise<boolean> {
    const token = await this.#token?.text();
    const { status, text } = await this.#client.ask(
      {
        method: "POST",
        url: `${this.#settings.apiServer.replace(/\/$/, "")}${PATH}`,
        headers: {
          accept: "application/json",
          "content-type": "application/json",
          ...(token === undefined ? {} : { authorization: `Bearer ${token.trim()}` }),
        },
        body,
      },
      signal,
    );
    if (status !== 200 && status !== 201) throw new RemoteError(`status ${status}`);
    return isAllowed(text);
  }

  close(): void {
    this.#client.close();
  }
}

function questionOf(spec: object): string {
  const api = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview" };
  return JSON.stringify({ ...api, spec });
}

function isAllowed(text: string): boolean {
  try {
    const review = parseStrictJson(text);
    const status = isJsonObject(review) ? review["status"] : undefined;
    if (isJsonObject(status) && typeof status["allowed"] === "boolean") {
      return status["allowed"] && status["denied"] !== true;
    }
  } catch {
    // Not passed on: the message of JSON.parse quotes the text.
  }
  throw new RemoteError("the answer is not a SubjectAccessReview");
}
