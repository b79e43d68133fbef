/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_BANNED_H
#define HUTCH_BASE_BANNED_H

/*
 * Functions that are easy to use wrongly do not compile here. Included last by base/base.h.
 *
 * strcpy and its relatives know no bounds; strtok, gmtime and localtime hide state; atoi and its
 * relatives cannot report an error, scanf overflows its numbers; strncpy may leave its target
 * unterminated; system and popen put a shell between us and a program. Use base/buf.h, base/str.h,
 * base/parse.h and base/clock.h. Every .c file of src/ includes this one or base/base.h;
 * tools/check-layers checks that.
 */

/* Their declarations must come before the bans, whatever a file includes afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(f) sorry_##f##_is_banned_see_base_banned_h

/* clang-format off */
#undef strcpy
#define strcpy(...)    BANNED(strcpy)
#undef strcat
#define strcat(...)    BANNED(strcat)
#undef strncpy
#define strncpy(...)   BANNED(strncpy)
#undef strncat
#define strncat(...)   BANNED(strncat)
#undef stpcpy
#define stpcpy(...)    BANNED(stpcpy)
#undef strtok
#define strtok(...)    BANNED(strtok)
#undef strtok_r
#define strtok_r(...)  BANNED(strtok_r)
#undef sprintf
#define sprintf(...)   BANNED(sprintf)
#undef vsprintf
#define vsprintf(...)  BANNED(vsprintf)
#undef gets
#define gets(...)      BANNED(gets)
#undef atoi
#define atoi(...)      BANNED(atoi)
#undef atol
#define atol(...)      BANNED(atol)
#undef atoll
#define atoll(...)     BANNED(atoll)
#undef atof
#define atof(...)      BANNED(atof)
#undef sscanf
#define sscanf(...)    BANNED(sscanf)
#undef fscanf
#define fscanf(...)    BANNED(fscanf)
#undef gmtime
#define gmtime(...)    BANNED(gmtime)
#undef localtime
#define localtime(...) BANNED(localtime)
#undef ctime
#define ctime(...)     BANNED(ctime)
#undef ctime_r
#define ctime_r(...)   BANNED(ctime_r)
#undef asctime
#define asctime(...)   BANNED(asctime)
#undef asctime_r
#define asctime_r(...) BANNED(asctime_r)
#undef alloca
#define alloca(...)    BANNED(alloca)
#undef mktemp
#define mktemp(...)    BANNED(mktemp)
#undef tmpnam
#define tmpnam(...)    BANNED(tmpnam)
#undef tempnam
#define tempnam(...)   BANNED(tempnam)
#undef system
#define system(...)    BANNED(system)
#undef popen
#define popen(...)     BANNED(popen)
#undef rand
#define rand(...)      BANNED(rand)
#undef random
#define random(...)    BANNED(random)
/* clang-format on */

#endif
