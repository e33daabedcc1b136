import { networkInterfaces } from "node:os";
import { expect, test } from "vitest";
import { faultsOf } from "./configuration-file.ts";

const configuration = (listen: string, target: string, admin = '{ listen: "127.0.0.1:9464" }') =>
  `server: { tls: off, listen: "${listen}" }
admin: ${admin}
upstreams: { app: { targets: ["http://127.0.0.1:1", "${target}"] } }
`;
const own = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .filter(({ family, internal }) => family === "IPv4" && !internal)
  .map(({ address }) => ["0.0.0.0:8443", `http://${address}:8443`]);

test.each([
  ["0.0.0.0:8443", "http://127.0.0.1:8443"],
  ["0.0.0.0:8443", "https://127.0.0.1:8443"],
  ["0.0.0.0:8443", "http://127.9.9.9:8443"],
  ["0.0.0.0:8443", "http://localhost:8443"],
  ["0.0.0.0:8443", "http://LOCALHOST:8443"],
  ["0.0.0.0:8443", "http://0.0.0.0:8443"],
  ["[::]:8443", "http://[::1]:8443"],
  ["[::]:8443", "http://127.0.0.1:8443"],
  ["[::]:8443", "http://[::ffff:127.0.0.1]:8443"],
  ["127.0.0.1:8443", "http://127.0.0.1:8443"],
  ["127.0.0.1:8443", "http://0.0.0.0:8443"],
  ["127.0.0.1:80", "http://127.0.0.1"],
  ["127.0.0.1:443", "https://127.0.0.1"],
  ["localhost:8443", "http://127.0.0.1:8443"],
  ["127.0.0.1:8443", "http://127.0.0.1:9464"],
  ...own,
])("refuses a target that is the listener itself: %s and %s", async (listen, target) => {
  expect(await faultsOf(configuration(listen, target))).toEqual(["3:53 upstreams.app.targets[1]"]);
});

test.each([
  ["0.0.0.0:8443", "http://127.0.0.1:8080"],
  ["127.0.0.1:8443", "http://127.0.0.2:8443"],
  ["127.0.0.1:8443", "http://192.0.2.1:8443"],
  ["127.0.0.1:8443", "http://orders:8443"],
  ["127.0.0.1:8443", "unix:/run/8443"],
  ["127.0.0.1:0", "http://127.0.0.1:8443"],
])("accepts any other target: %s and %s", async (listen, target) => {
  expect(await faultsOf(configuration(listen, target))).toEqual([]);
});

test("without an admin listener, a target may use its port", async () => {
  const text = configuration("127.0.0.1:8443", "http://127.0.0.1:9464", "off");
  expect(await faultsOf(text)).toEqual([]);
});
