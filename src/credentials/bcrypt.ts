import { timingSafeEqual } from "node:crypto";
import { hashSync, truncates } from "bcryptjs";
import type { HashKind } from "./hash-kind.ts";

const FORM = /^\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{53}$/;
const SALT_LENGTH = 29;
/** 2^8 rounds are guessed a thousand times faster than they should be; still fewer are no protection at all. */
const MIN_COST = 8;
/** 2^16 rounds keep a thread busy for about 5 s: bcryptjs took 0.32 s for 2^12. */
const MAX_COST = 16;

/**
 * bcrypt with the prefixes `$2a$`, `$2b$` and `$2y$`, which mean the same here. bcrypt reads 72 bytes of a password and
 * ignores the rest; a longer password never matches, since it would be accepted with any other ending.
 */
export const bcrypt: HashKind = {
  claims: (text) => /^\$2[aby]\$/.test(text),

  read(text) {
    const cost = Number(FORM.exec(text)?.[1]);
    if (Number.isNaN(cost)) return { refused: "bcrypt: the form is $2b$cost$ and 53 characters" };
    if (cost < MIN_COST || cost > MAX_COST) return { refused: "bcrypt: the cost must be 8 to 16" };

    const salt = text.slice(0, SALT_LENGTH);
    const expected = Buffer.from(text.slice(SALT_LENGTH), "latin1");
    return {
      matches(password) {
        // The hash alone is compared: bcryptjs rewrites the two unused bits at the end of a salt.
        const hash = Buffer.from(hashSync(password, salt).slice(SALT_LENGTH), "latin1");
        return timingSafeEqual(hash, expected) && !truncates(password);
      },
    };
  },
};
