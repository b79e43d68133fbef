/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_BASE_H
#define HUTCH_BASE_BASE_H

/* What nearly every file needs. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"

#include "base/banned.h"

#endif
