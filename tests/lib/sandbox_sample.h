/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_SANDBOX_SAMPLE_H
#define HUTCH_TESTS_SANDBOX_SAMPLE_H

/* Records for tests: one with everything a record can hold, one with as little as it may. As texts,
 * exactly as they are stored. */

#define SAMPLE_FULL                                                                             \
        "{\"schema\":1,\"sandboxId\":\"sb-1\",\"organizationId\":\"o:1\",\"projectId\":\"p\","  \
        "\"userId\":\"\xc3\xbc\",\"containerName\":\"hutch-sb-1\",\"createdAt\":1700000000123," \
        "\"gitConfigured\":true,\"scope\":{\"kind\":\"conversation\",\"key\":\"c/1\"},"         \
        "\"ownerBound\":true,\"tenant\":\"acme\",\"node\":\"n1\",\"driver\":\"native\","        \
        "\"image\":\"debian:12\",\"platform\":{\"os\":\"linux\",\"arch\":\"amd64\"},"           \
        "\"entrypoint\":[\"sh\",\"-c\",\"\",\"a\\nb\"],\"envNames\":[\"A\",\"B_2\"],"           \
        "\"resourceLimits\":{\"cpu\":\"500m\",\"memory\":\"256Mi\",\"gpu\":\"all\","            \
        "\"disk\":\"10.0Gi\"},"                                                                 \
        "\"networkPolicy\":{\"defaultAction\":\"deny\",\"egress\":[{\"action\":\"allow\","      \
        "\"target\":\"*.example.com\"},{\"action\":\"deny\",\"target\":\"10.0.0.0/8\"}]},"      \
        "\"volumes\":[{\"name\":\"h\",\"mountPath\":\"/mnt/h\",\"subPath\":\"a/b\","            \
        "\"readOnly\":true,\"host\":{\"path\":\"/srv/h\"}},"                                    \
        "{\"name\":\"p\",\"mountPath\":\"/mnt/p\",\"pvc\":{\"claimName\":\"c\","                \
        "\"createIfNotExists\":false,\"deleteOnSandboxTermination\":true,"                      \
        "\"storageClass\":\"fast\",\"storage\":\"10Gi\",\"accessModes\":[\"ReadWriteOnce\"]}}," \
        "{\"name\":\"o\",\"mountPath\":\"/mnt/o\",\"ossfs\":{\"bucket\":\"bkt\","               \
        "\"endpoint\":\"oss.example.com\",\"version\":\"2.0\",\"options\":[\"x=y\"]}}],"        \
        "\"metadata\":{\"name\":\"a\",\"team/x\":\"\"},"                                        \
        "\"extensions\":{\"access.renew.extend.seconds\":\"300\"},\"secureAccess\":true,"       \
        "\"expiry\":{\"at\":1700000600123,\"mono\":600000000,\"granted\":600000,"               \
        "\"bootId\":\"b-1\"},"                                                                  \
        "\"status\":{\"state\":\"Running\",\"reason\":\"CONTAINER_RUNNING\","                   \
        "\"message\":\"fine\",\"lastTransitionAt\":1700000001000},"                             \
        "\"handle\":{\"pid\":7,\"x\":[1,null,1.5]},\"version\":3}"

#define SAMPLE_SMALL                                                                      \
        "{\"schema\":1,\"sandboxId\":\"a\",\"organizationId\":\"o\",\"projectId\":\"p\"," \
        "\"userId\":\"u\",\"containerName\":\"hutch-a\",\"createdAt\":0,"                 \
        "\"scope\":{\"kind\":\"shared-project-user\"},\"tenant\":\"t\",\"node\":\"n\","   \
        "\"driver\":\"fake\",\"snapshotId\":\"s\",\"entrypoint\":[\"sh\"],"               \
        "\"status\":{\"state\":\"Pending\",\"lastTransitionAt\":0},\"version\":1}"

#endif
