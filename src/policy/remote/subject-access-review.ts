import { API_SERVER_HINT } from "../../core/remote-check.ts";
import { RemoteError } from "../../lib/text/error-code.ts";
import { isJsonObject, jsonObjectIn } from "../../lib/text/strict-json.ts";
import type { AuthorizerKind } from "./authorizer-kinds.ts";
import { RequestTemplate } from "./request-template.ts";

interface SubjectAccessReviewSettings {
  readonly apiServer: string;
  /** The issuers whose subjects and groups are those of the cluster. Callers of other issuers are refused. */
  readonly issuers?: readonly string[];
  /** The attributes of a resource, with references to the request. Without them, the review is about the path. */
  readonly resource?: Readonly<Record<string, string>>;
}

const PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

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
  connections: 16,
  open({ apiServer, issuers, resource }) {
    const template = resource && new RequestTemplate(resource);
    return {
      url: `${apiServer.replace(/\/$/, "")}${PATH}`,
      questions(request, { subject: user, groups, issuer }) {
        // The same name from another issuer belongs to somebody else.
        if (issuers?.includes(issuer) !== true) return undefined;
        const verb = VERBS[request.method] ?? "*";
        const asked =
          template === undefined
            ? [{ nonResourceAttributes: { path: request.matchPath, verb } }]
            : template.render(request)?.map((resourceAttributes) => ({
                resourceAttributes: { ...resourceAttributes, verb },
              }));
        return asked?.map((attributes) => questionOf({ user, groups, ...attributes }));
      },
      isAllowed({ status, text }) {
        if (status !== 200 && status !== 201) throw new RemoteError(`status ${status}`);
        return isAllowed(text);
      },
    };
  },
  complete: ({ issuers }, clusterIssuers) => ({ issuers: issuers ?? clusterIssuers }),
  probe: ({ apiServer: url }, nobody) => ({
    url,
    question: questionOf({ user: nobody, nonResourceAttributes: { path: "/", verb: "get" } }),
    hint: API_SERVER_HINT,
  }),
};

function questionOf(spec: object): string {
  const api = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview" };
  return JSON.stringify({ ...api, spec });
}

function isAllowed(text: string): boolean {
  const status = jsonObjectIn(text)?.["status"];
  if (isJsonObject(status) && typeof status["allowed"] === "boolean") {
    return status["allowed"] && status["denied"] !== true;
  }
  throw new RemoteError("the answer is not a SubjectAccessReview");
}
