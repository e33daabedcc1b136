import { type AdminPage, JSON_TYPE } from "../core/admin-page.ts";
import type { Endpoint } from "../core/endpoint.ts";
import { envelopeAnswer } from "./answer.ts";

/** As identity providers name it. */
export const KEY_SET_PATH = "/.well-known/jwks.json";

/** Less than a new key is published before it signs, so that whoever keeps the set has it by then. */
const KEPT_FOR_S = 60;

/** Gives the public keys, as members of a JWK Set. */
type PublicKeys = () => readonly object[];

/** The public keys on the admin listener. */
export function keySetPage(keys: PublicKeys): AdminPage {
  return {
    path: KEY_SET_PATH,
    method: "GET",
    audience: "everybody",
    answer: () => ({
      status: 200,
      type: JSON_TYPE,
      body: `${JSON.stringify({ keys: keys() })}\n`,
    }),
  };
}

/** The public keys on the main listener, for everybody. Members of the envelope are passed over by readers (RFC 7517 §5). */
export function keySetEndpoint(keys: PublicKeys): Endpoint {
  return {
    name: "jwks",
    methods: ["GET", "HEAD"],
    auth: "none",
    async answer({ request }) {
      const envelope = { id: request.id, message: "Public keys", success: true, keys: keys() };
      const answer = envelopeAnswer(200, envelope, request.requestId);
      const headers = answer.headers.map((value) =>
        value === "no-store" ? `public, max-age=${KEPT_FOR_S}` : value,
      );
      return { ...answer, headers };
    },
  };
}
