import { setTimeout as delay } from "node:timers/promises";
import { cheapHash } from "../../test/support/sallyport.ts";
import { usersFile } from "../deployment/identities.ts";
import { addressOf, guesserAddress } from "../traffic/addresses.ts";
import { loginRequest } from "../traffic/tokens.ts";
import type { FaultContext } from "./fault.ts";
import { untilLogged } from "./until-logged.ts";

const FILE = "users/users.yaml";
const READ_AGAIN = "the users file was reloaded";
const UNUSABLE = "the users file cannot be used: the old users stay in use";
const PASSWORD = "a guest's password";

let guests = 0;

/**
 * A guest is added, then the file becomes invalid, and then valid again without the guest. All other users can always log
 * in; the guest can until a valid file no longer contains the name.
 */
export async function usersFileChanges({ world, book, holdMs }: FaultContext): Promise<void> {
  const { deployment, client } = world;
  book.expectError(UNUSABLE);
  guests += 1;
  const guest = `guest${guests}`;
  const logIn = (address: string, status: number): Promise<unknown> =>
    client.ask(`login of a guest, ${status}`, loginRequest(guest, PASSWORD, address, [status]));

  const withGuest = { ...deployment.users, [guest]: { password: cheapHash(PASSWORD) } };
  await untilLogged(book, READ_AGAIN, () => deployment.replaceFile(FILE, usersFile(withGuest)));
  await logIn(addressOf(guests), 200);
  await untilLogged(book, UNUSABLE, () =>
    deployment.replaceFile(FILE, "users: { alice: {{ broken"),
  );
  await delay(holdMs);
  await logIn(addressOf(guests), 200);
  await untilLogged(book, READ_AGAIN, () =>
    deployment.replaceFile(FILE, usersFile(deployment.users)),
  );
  await logIn(guesserAddress(guests), 401);
}
