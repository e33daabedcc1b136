import type { AdminPage } from "../../core/admin-page.ts";
import { page, success } from "../admin/state-pages.ts";
import type { Endpoint } from "../request/gate.ts";
import { successAnswer } from "../request/write-answer.ts";

/** The usual path of identity providers. */
const KEY_SET_PATH = "/.well-known/jwks.json";

/** In seconds. Shorter than the time between publishing a key and signing with it, so that caches have it by then. */
const MAX_AGE_S = 60;

const MESSAGE = "Public keys";

/** Returns the public keys as members of a JWK Set. */
type PublicKeys = () => readonly object[];

/** The public keys on the admin listener. */
export function keySetPage(keys: PublicKeys): AdminPage {
  return page(KEY_SET_PATH, () => success(MESSAGE, { keys: keys() }));
}

/** The public keys on the main listener, for everyone, with their path. Readers ignore the members of the envelope (RFC 7517 §5). */
export function keySetEndpoint(keys: PublicKeys): readonly [string, Endpoint] {
  const endpoint: Endpoint = {
    name: "jwks",
    methods: ["GET", "HEAD"],
    auth: "none",
    async answer({ request }) {
      const answer = successAnswer(request, MESSAGE, { keys: keys() });
      const headers = answer.headers.map((value) =>
        value === "no-store" ? `public, max-age=${MAX_AGE_S}` : value,
      );
      return { ...answer, headers };
    },
  };
  return [KEY_SET_PATH, endpoint];
}
