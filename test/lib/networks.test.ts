import { describe, expect, test } from "vitest";
import { createNetworks, unmapAddress, parseAddress } from "../../src/lib/http/networks.ts";

describe("a set of networks", () => {
  const set = createNetworks(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::1"]);

  test.each([
    ["10.0.0.0", true],
    ["10.255.255.255", true],
    ["11.0.0.0", false],
    ["9.255.255.255", false],
    ["192.0.2.7", true],
    ["192.0.2.8", false],
    ["2001:db8::1", true],
    ["2001:DB8:0:0:0:0:0:1", true],
    ["2001:db9::1", false],
    ["::1", true],
    ["::2", false],
    ["::ffff:10.1.2.3", true],
    ["::ffff:11.1.2.3", false],
    ["localhost", false],
    ["10.0.0.1:80", false],
    ["", false],
  ])("contains %s: %s", (address, expected) => {
    expect(set.has(address)).toBe(expected);
  });

  test("is empty without ranges, and then contains no address", () => {
    const none = createNetworks([]);
    expect([set.empty, none.empty]).toEqual([false, true]);
    expect(none.has("127.0.0.1")).toBe(false);
  });

  test("can contain all addresses", () => {
    const all = createNetworks(["0.0.0.0/0", "::/0"]);
    expect([all.has("203.0.113.9"), all.has("2001:db8::1")]).toEqual([true, true]);
  });

  test.each(["nonsense", "10.0.0.0/33", "10.0.0"])("cannot be created from %s", (range) => {
    expect(() => createNetworks([range])).toThrow();
  });
});

describe("an address", () => {
  test.each([
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["10.0.0.1", "10.0.0.1"],
    ["::1", "::1"],
    ["::ffff:1", "::ffff:1"],
    ["::ffff:300.0.0.1", "::ffff:300.0.0.1"],
    ["", ""],
  ])("%s is normalized to %s", (address, plain) => {
    expect(unmapAddress(address)).toBe(plain);
  });
});

describe("a written address", () => {
  test.each([
    ["192.0.2.7", "192.0.2.7"],
    ["192.0.2.7:4711", "192.0.2.7"],
    ["2001:db8::1", "2001:db8::1"],
    ["2001:DB8:0:0::1", "2001:db8::1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["[2001:db8::1]:443", "2001:db8::1"],
    ["fe80::1%eth0", "fe80::1"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::FFFF:192.0.2.7", "192.0.2.7"],
    ["::ffff:c000:207", "192.0.2.7"],
    ["0:0:0:0:0:FFFF:192.0.2.7", "192.0.2.7"],
    ["[::ffff:c000:207]:443", "192.0.2.7"],
    ["::192.0.2.7", "::192.0.2.7"],
  ])("%s is %s", (written, address) => {
    expect(parseAddress(written)).toBe(address);
  });

  test.each([
    ...["", "unknown", "_hidden", "localhost", "localhost:80", "192.0.2", "192.0.2.7:", ":80"],
    ...["192.0.2.7:http", "192.0.2.7:123456", "192.0.2.7:1:2", "[192.0.2.7]", "[2001:db8::1", "[]"],
    ...["2001:db8::1]:80", "[2001:db8::1]:", "192.0.2.7 ", "192.0.2.7/24", "256.0.0.1:80"],
    '"[2001:db8::1]:443"',
  ])("%j is invalid", (written) => {
    expect(parseAddress(written)).toBeUndefined();
  });
});
