import { expect, test } from "vitest";
import { readArguments } from "../../../soak/exhaustion/arguments.ts";
import { ATTACKS } from "../../../soak/exhaustion/attacks.ts";
import { request } from "../../../soak/exhaustion/attacks/attack.ts";
import { shippedSettings } from "../../../soak/exhaustion/victim/shipped-settings.ts";

const IDLE = { opened: 0, refused: 0, open: 0, finished: 0, sent: 0, received: 0 };
const FIELD = {
  port: 1,
  adminPort: 2,
  tls: true,
  connections: 100,
  token: "token",
  largeTokens: (count: number) => Promise.resolve(Array.from({ length: count }, () => "token")),
};

test.each(ATTACKS)(
  "$name that did nothing is distinguished from one that was contained",
  ({ bites }) => {
    expect(bites(IDLE, FIELD)).toBe(false);
  },
);

test("every attack has a name of its own", () => {
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length);
});

test("a padded head has the bytes that were asked for, and ends", () => {
  const head = request("/app/ok", { bytes: 16_000 });
  expect(head).toHaveLength(16_000);
  expect(head.endsWith("\r\n\r\n")).toBe(true);
});

test("the shipped limits are read, and not guessed", () => {
  expect(shippedSettings()).toMatchObject({
    limits: { connections: expect.any(Number), bufferedBytes: expect.any(String) },
    login: { hashing: { concurrency: expect.any(Number) } },
  });
});

test("what is asked for is checked", () => {
  expect(readArguments([])).toMatchObject({ workers: [1, 4], over: [true, false], seconds: 12 });
  expect(readArguments(["--tls", "--workers", "2"])).toMatchObject({ workers: [2], over: [true] });
  expect(() => readArguments(["--only", "nothing"])).toThrow("no attack is named nothing");
  expect(() => readArguments(["--workers", "0"])).toThrow("--workers must be a whole number");
});
