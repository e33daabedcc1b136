import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import type { Forwarder } from "../../src/core/request/forwarder.ts";
import { GateRequest, type GateRequestParts } from "../../src/core/request/gate-request.ts";
import { Identity, type IdentityClaims } from "../../src/core/request/identity.ts";
import { Permit, type PermitParts } from "../../src/core/request/permit.ts";
import type { Transfer } from "../../src/core/request/transfer.ts";
import { authorize } from "../../src/policy/authorize.ts";
import { identityWith, permitFor, requestWith, routeWith } from "../support/permit.ts";

const PROOFS = [
  { name: "GateRequest", is: GateRequest.is, of: GateRequest, genuine: requestWith() },
  { name: "Identity", is: Identity.is, of: Identity, genuine: identityWith() },
  { name: "Permit", is: Permit.is, of: Permit, genuine: permitFor() },
];

describe.each(PROOFS)("$name", ({ is, of, genuine }) => {
  test("is what was made in the one place", () => {
    expect(is(genuine)).toBe(true);
  });

  test.each([
    ["a look-alike", Object.assign({}, genuine)],
    ["one with its prototype", Object.assign(Object.create(of.prototype), genuine)],
    ["what derives from a genuine one", Object.create(genuine)],
    ["a proxy before a genuine one", new Proxy(genuine, {})],
    ["a copy", structuredClone(genuine)],
    ["undefined", undefined],
    ["null", null],
    ["a text", "GateRequest"],
  ])("is not %s", (_name, value) => {
    expect(is(value)).toBe(false);
  });

  test("is none of the others", () => {
    const others = PROOFS.filter((other) => other.genuine !== genuine);
    expect(others.map((other) => is(other.genuine))).toEqual([false, false]);
  });
});

/**
 * What follows is never run: `npm run check:types` reads it. Each line is wrong, and `@ts-expect-error` is an error itself
 * where the compiler finds nothing wrong.
 */
export function forgeries(
  forwarder: Forwarder,
  [message, response, transfer]: [IncomingMessage, ServerResponse, Transfer],
  {
    parts,
    claims,
    permit,
  }: { parts: GateRequestParts; claims: IdentityClaims; permit: PermitParts },
): unknown[] {
  const head = Buffer.alloc(0);
  return [
    // @ts-expect-error what looks like a request has not been through intake
    authorize(parts, routeWith(), identityWith()),
    // @ts-expect-error what looks like an identity has not been verified
    authorize(requestWith(), routeWith(), claims),
    // @ts-expect-error an object literal is no identity either
    authorize(requestWith(), routeWith(), {
      subject: "root",
      groups: [],
      issuer: "",
      expiresAt: 0,
    }),
    // @ts-expect-error what looks like a permit was not given by policy
    forwarder.forward(permit, message, response, transfer),
    // @ts-expect-error a copy of a permit is none
    forwarder.forward(structuredClone<PermitParts>(permitFor()), message, response, transfer),
    // @ts-expect-error a request alone is not permitted
    forwarder.forward(requestWith(), message, response, transfer),
    // @ts-expect-error a WebSocket needs a permit, too
    forwarder.upgrade(permit, message, head, response, transfer),
    // @ts-expect-error the constructor is private
    new GateRequest(parts),
    // @ts-expect-error the constructor is private
    new Identity(claims),
    // @ts-expect-error the constructor is private
    new Permit(permit),
  ];
}
