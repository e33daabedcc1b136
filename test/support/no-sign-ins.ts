import { GateError } from "../../src/core/request/errors.ts";
import type { SignIns } from "../../src/core/login.ts";

const refuse = () => Promise.reject(new GateError("internal"));

/** Nobody signs in at a provider. */
export const NO_SIGN_INS: SignIns = {
  beginSignIn: refuse,
  finishSignIn: refuse,
  signOutUrl: refuse,
  endSessions: refuse,
};
