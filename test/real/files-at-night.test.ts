/** As in `operator-at-night.test.ts`, for files: what they held before stays in use, and the displays say so. */
import { readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { clientAuthority } from "../support/client-certificates.ts";
import { replaceFile } from "../support/edits.ts";
import { missing } from "../support/program.ts";
import { type Night, startNight } from "./night.ts";
import { expectSeen } from "./night-faults.ts";
import { slapdMissing } from "./slapd-server.ts";

const reason = missing("redis-server") ?? slapdMissing;
let night: Night;
let keys: string;
beforeAll(async () => {
  if (reason !== undefined) return;
  night = await startNight();
  keys = join(night.directory, "keys");
});
afterAll(() => night?.[Symbol.asyncDispose]());

/** The row of a reload that failed. */
const row = /files configuration and the files that it names changed, but not in force/;

it.skipIf(reason !== undefined)("the file of a signing key is removed", async () => {
  const signing = (await night.top()).keys.find(({ state }) => state === "signing");
  const name = (await readdir(keys)).find((each) => join(keys, each) === signing?.file) ?? "";
  await expectSeen(night, {
    harm: () => rename(join(keys, name), join(night.directory, name)),
    heal: () => rename(join(night.directory, name), join(keys, name)),
    row: new RegExp(`signing key ${signing?.kid} was removed its tokens are refused`),
  });
});

it.skipIf(reason !== undefined)("the directory of keys is removed", async () => {
  await expectSeen(night, {
    harm: () => rename(keys, `${keys}.away`),
    heal: () => rename(`${keys}.away`, keys),
    row,
    reload: /keys the directory of keys cannot be read ENOENT/,
    files: /tokens\.keys names a directory that does not exist/,
    without: ["doctor"],
  });
});

/** Puts another pair in place of the certificate, and the first one back. */
async function certificateFault(pair: { readonly cert: string; readonly key: string }) {
  const read = (name: string) => readFile(join(night.directory, name), "utf8");
  const [cert, key] = [await read("tls.crt"), await read("tls.key")];
  const put = async (next: typeof pair): Promise<void> => {
    await replaceFile(night, "tls.key", next.key);
    await replaceFile(night, "tls.crt", next.cert);
  };
  return { harm: () => put(pair), heal: () => put({ cert, key }), row };
}

it.skipIf(reason !== undefined)("the certificate is replaced by one that has ended", async () => {
  const authority = await clientAuthority();
  const ended = await authority.certificate({ usage: "serverAuth", days: [-30, -1] });
  await expectSeen(night, {
    ...(await certificateFault(ended)),
    reload: /tls\.crt is not valid now/,
    files: /tls\.crt the certificate expired on/,
  });
});

it.skipIf(reason !== undefined)("the certificate is replaced by garbage", async () => {
  const key = await readFile(join(night.directory, "tls.key"), "utf8");
  await expectSeen(night, {
    ...(await certificateFault({ cert: "garbage", key })),
    reload: /tls\.crt holds no PEM certificate/,
    files: /tls\.crt\S* holds no PEM certificate/,
    without: ["doctor"],
  });
});
