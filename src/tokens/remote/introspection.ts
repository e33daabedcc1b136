import { RemoteError } from "../../lib/text/remote-error.ts";
import { jsonObjectIn } from "../../lib/text/strict-json.ts";
import type { RemoteClaims, TokenCheckKind } from "./token-check-kind.ts";

interface IntrospectionSettings {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Token introspection (RFC 7662). */
export const introspection: TokenCheckKind<IntrospectionSettings> = {
  label: "introspection",
  opaqueOnly: true,
  ofCluster: false,
  hint: "do clientId and clientSecret belong to a client that may introspect tokens?",
  url: ({ url }) => url,
  open({ url, clientId, clientSecret }) {
    // Both are form-encoded first (RFC 6749 §2.3.1).
    const pair = [clientId, clientSecret].map(formEncoded).join(":");
    const headers = {
      accept: "application/json",
      authorization: `Basic ${Buffer.from(pair, "utf8").toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
    };
    return {
      async question(token) {
        const body = new URLSearchParams({ token, token_type_hint: "access_token" }).toString();
        return { method: "POST", url, headers, body };
      },
      claimsIn({ status, text }) {
        if (status !== 200) throw new RemoteError(`status ${status}`);
        return claimsIn(text);
      },
    };
  },
};

function formEncoded(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

/** Returns the claims of an active bearer token, else undefined. */
function claimsIn(text: string): RemoteClaims | undefined {
  const answer = jsonObjectIn(text);
  const { active, token_type: type } = answer ?? {};
  if (typeof active !== "boolean")
    throw new RemoteError("the answer is not an introspection response");
  const bearer = type === undefined || (typeof type === "string" && /^bearer$/i.test(type));
  return active && bearer ? answer : undefined;
}
