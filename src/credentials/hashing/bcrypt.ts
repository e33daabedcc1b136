import { timingSafeEqual } from "node:crypto";
import { hashSync, truncates } from "bcryptjs";
import type { HashKind } from "./hash-kind.ts";

const FORM = /^\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{53}$/;
const SALT_LENGTH = 29;
/**
 * The lowest cost that a users file may contain: a quarter of the work that OWASP recommends. Other stores accept lower
 * costs.
 */
const STRONG_COST = 8;
/** The lowest cost in the OWASP Password Storage Cheat Sheet. */
const CURRENT_COST = 10;
/** The lowest cost that bcrypt defines. */
const MIN_COST = 4;
/** 2^16 rounds occupy a thread for about 5 s: bcryptjs took 0.32 s for 2^12. */
const MAX_COST = 16;
const COST = "bcrypt: the cost must be 8 to 16";

/**
 * bcrypt with the prefixes `$2a$`, `$2b$` and `$2y$`, which are equivalent here. bcrypt reads 72 bytes of a password
 * and ignores the rest. A longer password never matches, since bcrypt would accept it with any other ending.
 */
export const bcrypt: HashKind = {
  claims: (text) => /^\$2[aby]\$/.test(text),

  read(text) {
    const cost = Number(FORM.exec(text)?.[1]);
    if (Number.isNaN(cost)) return { refused: "bcrypt: the form is $2b$cost$ and 53 characters" };
    if (cost < MIN_COST || cost > MAX_COST) return { refused: COST };

    const salt = text.slice(0, SALT_LENGTH);
    const expected = Buffer.from(text.slice(SALT_LENGTH), "latin1");
    return {
      ...(cost < STRONG_COST && { weak: COST }),
      ...(cost < CURRENT_COST && { outdated: `bcrypt of cost ${cost}, less than ${CURRENT_COST}` }),
      matches(password) {
        // Compares the hash without the salt: bcryptjs rewrites the two unused bits at the end of a salt.
        const hash = Buffer.from(hashSync(password, salt).slice(SALT_LENGTH), "latin1");
        return timingSafeEqual(hash, expected) && !truncates(password);
      },
    };
  },
};
