import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import type { Forwarder } from "../../src/upstream/forward.ts";
import { GateRequest, type GateRequestParts } from "../../src/core/request/gate-request.ts";
import { Identity, type IdentityClaims } from "../../src/core/request/identity.ts";
import { Permit } from "../../src/core/request/permit.ts";
import type { Transfer } from "../../src/core/request/transfer.ts";
import { authorize } from "../../src/policy/authorize.ts";
import { identityWith, permitFor, requestWith, routeWith } from "../support/permit.ts";

const PROOFS = [
  { name: "GateRequest", is: GateRequest.is, of: GateRequest, genuine: requestWith() },
  { name: "Identity", is: Identity.is, of: Identity, genuine: identityWith() },
  { name: "Permit", is: Permit.is, of: Permit, genuine: permitFor() },
];

describe.each(PROOFS)("$name", ({ is, of, genuine }) => {
  test("is recognized if it was made by its mint", () => {
    expect(is(genuine)).toBe(true);
  });

  test.each([
    ["a look-alike", Object.assign({}, genuine)],
    ["one with its prototype", Object.assign(Object.create(of.prototype), genuine)],
    ["an object derived from a genuine one", Object.create(genuine)],
    ["a Proxy of a genuine one", new Proxy(genuine, {})],
    ["a copy", structuredClone(genuine)],
    ["undefined", undefined],
    ["null", null],
    ["a text", "GateRequest"],
  ])("is not %s", (_name, value) => {
    expect(is(value)).toBe(false);
  });

  test("is not any of the others", () => {
    const others = PROOFS.filter((other) => other.genuine !== genuine);
    expect(others.map((other) => is(other.genuine))).toEqual([false, false]);
  });
});

type PermitParts = Pick<Permit, keyof Permit>;

/**
 * This is never run, only checked by `npm run check:types`. Each line is wrong, and `@ts-expect-error` is itself an
 * error if the compiler accepts the line.
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
    // @ts-expect-error an object with the shape of a request has not been through intake
    authorize(parts, routeWith(), identityWith()),
    // @ts-expect-error an object with the shape of an identity has not been verified
    authorize(requestWith(), routeWith(), claims),
    // @ts-expect-error an object literal is not an identity either
    authorize(requestWith(), routeWith(), {
      subject: "root",
      groups: [],
      issuer: "",
      expiresAt: 0,
    }),
    // @ts-expect-error an object with the shape of a permit was not issued by policy
    forwarder.forward(permit, message, response, transfer),
    // @ts-expect-error a copy of a permit is not a permit
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
    new Permit(permit.request, permit.route, permit.identity),
  ];
}
