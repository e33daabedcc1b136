import type { IncomingHttpHeaders } from "node:http";
import { expect, test } from "vitest";
import { createNetworks } from "../../src/lib/http/networks.ts";
import { accessRefusal } from "../../src/server/admin/admin-pages.ts";

const NOT_ALLOWED = "This address answers the peers of admin.allow only";
const OF_A_PAGE = "A web page may not ask for this";
const BY_NAME = "Ask for this by address or as localhost, not by another name";

const LISTENING = {
  allow: createNetworks(["127.0.0.0/8", "::1", "10.0.0.0/8"]),
  host: "Sidecar.Internal",
};

/** Decides about a peer that a test on the loopback cannot simulate with a connection. */
function refusal(
  remoteAddress: string | undefined,
  headers: IncomingHttpHeaders,
  method = "GET",
  url = "/-/",
) {
  return accessRefusal({ method, url, headers, socket: { remoteAddress } }, LISTENING);
}

test.each(["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])(
  "%s is the loopback: requests must use an address, localhost or the listener's name",
  (peer) => {
    expect(refusal(peer, { host: "evil.example:9464" })).toBe(BY_NAME);
    expect(refusal(peer, { host: "10.1.2.3:9464" })).toBeUndefined();
    expect(refusal(peer, { host: "localhost:9464" })).toBeUndefined();
    expect(refusal(peer, { host: "sidecar.internal:9464" })).toBeUndefined();
    expect(refusal(peer, {})).toBeUndefined();
  },
);

test.each(["10.1.2.3", "::ffff:10.1.2.3"])(
  "%s, which is in an allowed network, may use the name of a Service, but not from a web page",
  (peer) => {
    const host = "sidecar.shop.svc:9464";
    expect(refusal(peer, { host }, "POST")).toBeUndefined();
    expect(refusal(peer, { host, origin: "http://sidecar.shop.svc:9464" })).toBe(OF_A_PAGE);
    expect(refusal(peer, { host, "sec-fetch-site": "none" })).toBeUndefined();
    expect(refusal(peer, { host, "sec-fetch-site": "none" }, "POST")).toBe(OF_A_PAGE);
  },
);

test.each(["11.1.2.3", "fe80::1", "", undefined])("%s is not allowed at all", (peer) => {
  expect(refusal(peer, { host: "localhost" })).toBe(NOT_ALLOWED);
});

test("a link of our own page may be followed, but no script, frame or other name gets the answer", () => {
  const link = { "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate" };
  const document = { ...link, "sec-fetch-dest": "document" };
  const host = "10.1.2.3:9464";
  expect(refusal("10.1.2.3", { host, ...document })).toBeUndefined();
  expect(refusal("10.1.2.3", { host, ...document }, "GET", "/-/?refresh")).toBeUndefined();
  expect(refusal("10.1.2.3", { host, ...document }, "POST")).toBe(OF_A_PAGE);
  for (const headers of [
    { ...document, host: "evil.example:9464" },
    { ...document, host, "sec-fetch-site": "cross-site" },
    { ...document, host, "sec-fetch-site": "same-site" },
    { ...document, host, "sec-fetch-mode": "no-cors" },
    { ...document, host, "sec-fetch-dest": "iframe" },
    { ...document, host, origin: "http://10.1.2.3:9464" },
    { ...link, host },
  ]) {
    expect(refusal("10.1.2.3", headers)).toBe(OF_A_PAGE);
  }
});
