/**
 * Names that another reader takes for ours. CGI, WSGI and many frameworks fold `-` and `_` into one, so `X_Forwarded_For`
 * or `X_Request_Id` arrives in the place of what the proxy has set. Names with `_` are dropped where they shadow a header
 * of ours, and pass where they do not.
 */
import { describe, expect, it } from "vitest";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const SHADOWS = [
  "X_Forwarded_For",
  "X-Forwarded_Host",
  "X_Forwarded-Proto",
  "x_forwarded_port",
  "X_Real_IP",
  "X_Request_Id",
  "X_Auth_Subject",
  "X_Auth_Groups",
  "X_Auth_Issuer",
];
const FRAMING = ["Content_Length", "Transfer_Encoding"];
const bytes = request([
  "GET /public/x HTTP/1.1",
  "Host: localhost",
  ...[...SHADOWS, ...FRAMING].map((name) => `${name}: 7`),
  "my_own_header: kept",
]);

describe("Sallyport", () => {
  const standing = useSallyport();

  it("drops them where they shadow a header of ours", async () => {
    const { gate, backend } = standing();
    expect((await exchange(gate, bytes)).last.status).toBe(200);
    const headers = backend.requests()[0]?.headers ?? [];
    const arrived = SHADOWS.filter((name) => valuesOf(headers, name.toLowerCase()).length > 0);
    expect(arrived).toEqual([]);
    expect(valuesOf(headers, "my_own_header")).toEqual(["kept"]);
  });
});

describe("http-proxy-3 as it comes", () => {
  const standing = useNaiveProxy();

  it("passes them on", async () => {
    const { gate, backend } = standing();
    await exchange(gate, bytes);
    const headers = backend.requests()[0]?.headers ?? [];
    const arrived = SHADOWS.filter((name) => valuesOf(headers, name.toLowerCase()).length > 0);
    expect(arrived).toEqual(SHADOWS);
  });
});
