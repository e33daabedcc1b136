import { expect } from "vitest";
import type { RawResponse } from "./raw-client.ts";

/** Expects a refusal by Sallyport, with the envelope and headers of the contract. */
export function expectEnvelope(response: RawResponse, status: number): void {
  expect(response.status).toBe(status);
  expect(response.header("content-type")).toBe("application/json");
  expect(response.header("content-length")).toBe(String(response.body.length));
  expect(response.header("cache-control")).toBe("no-store");
  expect(response.header("x-content-type-options")).toBe("nosniff");
  expect(response.header("x-request-id")).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  const body: unknown = JSON.parse(response.body);
  expect(body).toMatchObject({ message: expect.any(String), success: false });
  expect(body).toHaveProperty("id", expect.toSatisfy(Number.isSafeInteger));
}

/** Expects a refusal as the only response, after which the connection is closed. */
export function expectRefusal(
  exchanged: { readonly responses: readonly RawResponse[]; readonly ended: string },
  status: number,
): void {
  const [response, ...more] = exchanged.responses;
  expect(response).toBeDefined();
  if (response !== undefined) {
    expectEnvelope(response, status);
    expect(response.header("connection")).toBe("close");
  }
  expect(more).toEqual([]);
  expect(exchanged.ended).toBe("closed");
}
