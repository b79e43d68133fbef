/* SPDX-License-Identifier: Apache-2.0 */
#include "http/status.h"

#include "base/base.h"

static const struct {
        int status;
        struct str text;
} names[] = {
        { 100, STR("Continue") },
        { 101, STR("Switching Protocols") },
        { 103, STR("Early Hints") },
        { 200, STR("OK") },
        { 201, STR("Created") },
        { 202, STR("Accepted") },
        { 203, STR("Non-Authoritative Information") },
        { 204, STR("No Content") },
        { 205, STR("Reset Content") },
        { 206, STR("Partial Content") },
        { 207, STR("Multi-Status") },
        { 300, STR("Multiple Choices") },
        { 301, STR("Moved Permanently") },
        { 302, STR("Found") },
        { 303, STR("See Other") },
        { 304, STR("Not Modified") },
        { 307, STR("Temporary Redirect") },
        { 308, STR("Permanent Redirect") },
        { 400, STR("Bad Request") },
        { 401, STR("Unauthorized") },
        { 402, STR("Payment Required") },
        { 403, STR("Forbidden") },
        { 404, STR("Not Found") },
        { 405, STR("Method Not Allowed") },
        { 406, STR("Not Acceptable") },
        { 408, STR("Request Timeout") },
        { 409, STR("Conflict") },
        { 410, STR("Gone") },
        { 411, STR("Length Required") },
        { 412, STR("Precondition Failed") },
        { 413, STR("Content Too Large") },
        { 414, STR("URI Too Long") },
        { 415, STR("Unsupported Media Type") },
        { 416, STR("Range Not Satisfiable") },
        { 417, STR("Expectation Failed") },
        { 422, STR("Unprocessable Content") },
        { 421, STR("Misdirected Request") },
        { 423, STR("Locked") },
        { 424, STR("Failed Dependency") },
        { 425, STR("Too Early") },
        { 426, STR("Upgrade Required") },
        { 428, STR("Precondition Required") },
        { 429, STR("Too Many Requests") },
        { 431, STR("Request Header Fields Too Large") },
        { 451, STR("Unavailable For Legal Reasons") },
        { 500, STR("Internal Server Error") },
        { 501, STR("Not Implemented") },
        { 502, STR("Bad Gateway") },
        { 503, STR("Service Unavailable") },
        { 504, STR("Gateway Timeout") },
        { 505, STR("HTTP Version Not Supported") },
        { 507, STR("Insufficient Storage") },
};

struct str http_status_text(int status)
{
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (names[i].status == status)
                        return names[i].text;
        return STR("");
}

bool http_status_has_body(int status)
{
        return status >= 200 && status != 204 && status != 304;
}
