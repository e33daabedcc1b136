import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "ldapts";
import type { ContractUser } from "../credentials/user-store-contract.ts";
import { testCertificates } from "../support/certificates.ts";
import { freePort } from "../support/dead-ends.ts";
import { installed, missing } from "../support/program.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { type StoreServer, storeServer } from "./store-server.ts";

export const slapdMissing = missing("slapd");

const BASE = "dc=example,dc=com";
const ADMIN = `cn=admin,${BASE}`;
const PASSWORD = "of-the-test";

export interface SlapdServer extends StoreServer {
  readonly url: string;
  /** With TLS from the start (ldaps). */
  readonly secureUrl: string;
  hold(users: readonly ContractUser[]): Promise<void>;
  admin<Result>(work: (client: Client) => Promise<Result>): Promise<Result>;
}

export const SETTINGS = {
  bind: { dn: ADMIN, password: PASSWORD },
  search: { base: `ou=people,${BASE}`, filter: "(uid={username})" },
  groups: { base: `ou=groups,${BASE}`, filter: "(member={dn})", attribute: "cn" },
};

/**
 * Starts OpenLDAP with TLS and a password policy: three wrong passwords lock users for whom `strict` was called.
 *
 * @param data the directory for its data; a temporary one by default.
 */
export async function startSlapd(data?: string): Promise<SlapdServer> {
  const directory = await temporaryDirectory();
  const { ca, server } = await testCertificates();
  if (data === undefined) await mkdir(join(directory.path, "data"));
  await directory.write("ca.crt", ca);
  await directory.write("tls.crt", server.cert);
  await directory.write("tls.key", server.key);
  const [port, securePort] = [await freePort(), await freePort()];
  const file = await directory.write("slapd.conf", configurationOf(directory.path, data));
  const url = `ldap://127.0.0.1:${port}`;
  const secureUrl = `ldaps://127.0.0.1:${securePort}`;
  const admin: SlapdServer["admin"] = async (work) => {
    const client = new Client({ url, timeout: 5_000, connectTimeout: 5_000 });
    try {
      await client.bind(ADMIN, PASSWORD);
      return await work(client);
    } finally {
      await client.unbind();
    }
  };
  const program = storeServer({
    port,
    command: installed("slapd") ?? "slapd",
    args: ["-f", file, "-h", `${url} ${secureUrl}`, "-d", "0"],
    answers: () => admin(async () => true).catch(() => false),
  });
  await program.start();
  await admin(async (client) => {
    await client.add(BASE, { objectClass: ["dcObject", "organization"], dc: "example", o: "x" });
    for (const ou of ["people", "groups"]) {
      await client.add(`ou=${ou},${BASE}`, { objectClass: ["organizationalUnit"], ou });
    }
    await client.add(`cn=policy,${BASE}`, {
      objectClass: ["applicationProcess", "pwdPolicy"],
      cn: "policy",
      pwdAttribute: "userPassword",
      pwdLockout: "TRUE",
      pwdMaxFailure: "3",
    });
  });
  return {
    ...program,
    url,
    secureUrl,
    admin,
    async hold(users) {
      await program.start();
      await admin((client) => replaceUsers(client, users));
    },
    async [Symbol.asyncDispose]() {
      await program.kill();
      await directory.close();
    },
  };
}

function configurationOf(directory: string, data = `${directory}/data`): string {
  return `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload ppolicy
pidfile ${directory}/slapd.pid
TLSCertificateFile ${directory}/tls.crt
TLSCertificateKeyFile ${directory}/tls.key
TLSCACertificateFile ${directory}/ca.crt
sizelimit unlimited
database mdb
suffix "${BASE}"
rootdn "${ADMIN}"
rootpw ${PASSWORD}
directory ${data}
maxsize 16777216
index objectClass,uid,member eq
overlay ppolicy
ppolicy_use_lockout
`;
}

/** Replaces all users. The names of entries contain characters that a filter must escape. */
async function replaceUsers(client: Client, users: readonly ContractUser[]): Promise<void> {
  for (const ou of ["people", "groups"]) {
    const { searchEntries } = await client.search(`ou=${ou},${BASE}`, { scope: "one" });
    for (const { dn } of searchEntries) await client.del(dn);
  }
  const members = new Map<string, string[]>();
  for (const [index, { name, password, groups = [] }] of users.entries()) {
    const dn = `cn=User ${index} (a*b),ou=people,${BASE}`;
    await client.add(dn, {
      objectClass: ["inetOrgPerson"],
      cn: `User ${index} (a*b)`,
      sn: "x",
      uid: name,
      userPassword: password,
    });
    for (const group of groups) members.set(group, [...(members.get(group) ?? []), dn]);
  }
  for (const [cn, member] of members) {
    await client.add(`cn=${cn},ou=groups,${BASE}`, { objectClass: ["groupOfNames"], cn, member });
  }
}

/** Applies the password policy to a user. */
export function strict(server: SlapdServer, name: string): Promise<void> {
  return server.admin(async (client) => {
    const { Attribute, Change } = await import("ldapts");
    const people = `ou=people,${BASE}`;
    const { searchEntries } = await client.search(people, { filter: `(uid=${name})` });
    const type = "pwdPolicySubentry";
    const modification = new Attribute({ type, values: [`cn=policy,${BASE}`] });
    for (const { dn } of searchEntries) {
      await client.modify(dn, new Change({ operation: "replace", modification }));
    }
  });
}
