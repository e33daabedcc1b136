import { z } from "zod";
import { headerName, refuse, text, TOKEN } from "../fields.ts";

/** The places where the tokens of a route may be: `routes[].tokenFrom`. */

/** Fields that frame or route the message, or that contain more than one value. */
const NO_PLACE =
  /^(?:connection|content-.*|cookie|expect|forwarded|host|keep-alive|origin|proxy-.*|sec-.*|te|trailer|transfer-encoding|upgrade|x-forwarded-.*)$/i;

export function tokenPlaces() {
  const place = z
    .strictObject({
      header: headerName()
        .refine((name) => !NO_PLACE.test(name), "must be a header that can carry a token")
        .exactOptional()
        .describe("Header; Authorization requires the prefix Bearer, in others it is optional"),
      cookie: z
        .string()
        .regex(TOKEN, "must be the name of a cookie")
        .exactOptional()
        .describe(
          "Cookie; WebSockets and requests that change something must come from the same origin",
        ),
      query: text()
        .refine((name) => !/[&=#+%\s]/.test(name), "must be a name without & = # + % and blanks")
        .exactOptional()
        .describe("Query parameter; proxies in front and browser histories can see it"),
      websocketProtocol: z
        .boolean()
        .refine((looks) => looks, "must be true, or left out")
        .exactOptional()
        .describe(
          "Subprotocol that a WebSocket offers: base64url.bearer.authorization.k8s.io.<token>, or bearer, <token>",
        ),
    })
    .transform(({ header, cookie, query, websocketProtocol }, context): TokenPlaceOutput => {
      const given = [
        ...(header === undefined ? [] : [{ header }]),
        ...(cookie === undefined ? [] : [{ cookie }]),
        ...(query === undefined ? [] : [{ query }]),
        ...(websocketProtocol === undefined ? [] : [{ websocketProtocol: true as const }]),
      ];
      const [first] = given;
      if (first !== undefined && given.length === 1) return first;
      return refuse(context, "needs one of header, cookie, query and websocketProtocol");
    });
  return z
    .array(place)
    .min(1)
    .refine(areDifferent, "must not name a place twice")
    .describe(
      "Where the token may be; a request with two tokens gets 401. Sallyport removes the token before forwarding. Default: only the Authorization header",
    );
}

type TokenPlaceOutput =
  | { header: string }
  | { cookie: string }
  | { query: string }
  | { websocketProtocol: true };

function areDifferent(places: readonly TokenPlaceOutput[]): boolean {
  const names = places.map((place) =>
    JSON.stringify("header" in place ? { header: place.header.toLowerCase() } : place),
  );
  return new Set(names).size === names.length;
}
