/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/transport.h"

#include "base/base.h"

#ifdef HAVE_NATS
extern const struct transport_ops transport_nats;
#endif
#ifdef HAVE_MQTT
extern const struct transport_ops transport_mqtt;
#endif
#ifdef HAVE_AMQP
extern const struct transport_ops transport_amqp;
#endif

const struct transport_ops *const transports[] = {
#ifdef HAVE_NATS
        &transport_nats,
#endif
#ifdef HAVE_MQTT
        &transport_mqtt,
#endif
#ifdef HAVE_AMQP
        &transport_amqp,
#endif
        NULL,
};
