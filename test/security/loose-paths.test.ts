/**
 * Paths beyond the strict form, for backends that need them. Everything that is allowed is a chance for two readings:
 * `/public/x%2F..%2F..%2Fadmin` is below /public for the gate, and /admin for a backend that decodes it.
 */
import { describe, expect, it } from "vitest";
import { useLoosePaths } from "../support/loose-paths.ts";

describe("with paths: encoded and asSent", () => {
  const sent = useLoosePaths();

  it.each([
    ["/public/queues/%2F/orders", "/public/queues/%2F/orders"],
    ["/public/@scope%2fname", "/public/@scope%2Fname"],
    [
      "/public/projects/group%2Fproject/files/a%23b",
      "/public/projects/group%2Fproject/files/a%23b",
    ],
    ["/public/a%3Bb=1", "/public/a%3Bb=1"],
    ["/sent/a;v=1/b", "/sent/a;v=1/b"],
    ["/sent/a//b", "/sent/a//b"],
    ["/sent/list[0]|x", "/sent/list[0]|x"],
  ])("%s arrives", async (path, expected) => {
    expect(await sent(path)).toEqual({ status: 200, got: expected });
  });

  it.each([
    ...["/public/..%2Fadmin", "/public/%2e%2e%2fadmin", "/public/a%2F..%2F..%2Fadmin"],
    ...["/public/%252e%252e%252fadmin", "/public%2Fadmin", "/public/admin%2Fusers"],
    ...["/public/a%00", "/public/a%0d%0a", "/public/%c0%af", "/public/..%5Cadmin", "/public/a;b"],
    ...["/public/a//b", "/sent/..;/admin", "/sent/..;x/admin", "/sent//admin", "/sent/;/admin"],
    ...["/sent/%2Fadmin", "/sent;/admin", "/sent/admin;x=1/users", "/sent/a\\..\\admin"],
    ...[
      "/public/..%20",
      "/sent/..%20",
      "/public/..%20/admin",
      "/public/.%20",
      "/public/%20../admin",
    ],
    ...["/public/admin%20", "/public/admin%20%20", "/sent/admin%20", "/public/a%2F..%20"],
    ...["/public/..%20%23a", "/public/admin%20%3Fa", "/sent/..%20;a"],
    ...["/api%2Fauthenticate", "/sent/%3F/../admin", "/sent/%23%2F..%2F..%2Fadmin"],
  ])("%s is refused, and reaches nobody", async (path) => {
    expect(await sent(path)).toEqual({ status: 400, got: undefined });
  });

  it("routes with strict paths accept no other paths", async () => {
    for (const path of ["/a%2Fb", "/a;b", "/a//b", "/public/admin/a%2Fb"]) {
      expect(await sent(path)).toEqual({ status: 400, got: undefined });
    }
  });
});
