/* Room: store. What a session knows of its server, and who waits to know it. What a request is,
 * and how it is told that a server does not send parts, is not known here. */
#include "store/http_several.h"

void cv_several_init(cv_several *s, bool is_refused)
{
    cv_mutex_init(&s->lock);
    s->state = is_refused ? CV_SEVERAL_REFUSED : CV_SEVERAL_UNKNOWN;
    s->first = s->last = NULL;
    s->turn = 0;
    s->most = SIZE_MAX;
}

void cv_several_destroy(cv_several *s) { cv_mutex_destroy(&s->lock); }

cv_several_state cv_several_ask(cv_several *s, cv_several_waiter *waiter)
{
    cv_mutex_lock(&s->lock);
    if (s->state == CV_SEVERAL_ASKED && cv_os_has_forked(s->asked)) {
        s->state = CV_SEVERAL_UNKNOWN;
        s->first = s->last = NULL;
    }
    cv_several_state state = s->state;
    if (state == CV_SEVERAL_UNKNOWN) {
        s->state = CV_SEVERAL_ASKED;
        s->asked = cv_os_now();
    }
    if (state == CV_SEVERAL_UNKNOWN || state == CV_SEVERAL_ASKED) {
        waiter->next = NULL;
        waiter->turn = s->turn;
        waiter->is_asking = state == CV_SEVERAL_UNKNOWN;
        if (s->first)
            s->last->next = waiter;
        else
            s->first = waiter;
        s->last = waiter;
    }
    cv_mutex_unlock(&s->lock);
    return state;
}

cv_several_state cv_several_look(cv_several *s)
{
    cv_mutex_lock(&s->lock);
    cv_several_state state = s->state;
    cv_mutex_unlock(&s->lock);
    return state;
}

static void turn_from(cv_several *s, cv_several_state from, cv_several_state to, size_t most)
{
    cv_mutex_lock(&s->lock);
    if (s->state == from) {
        s->state = to;
        if (most < s->most) s->most = most;
    }
    cv_mutex_unlock(&s->lock);
}

void cv_several_expect(cv_several *s, size_t most)
{
    turn_from(s, CV_SEVERAL_UNKNOWN, CV_SEVERAL_EXPECTED, most);
}

void cv_several_confirm(cv_several *s)
{
    turn_from(s, CV_SEVERAL_EXPECTED, CV_SEVERAL_KNOWN, SIZE_MAX);
}

size_t cv_several_most(cv_several *s)
{
    cv_mutex_lock(&s->lock);
    size_t most = s->most;
    cv_mutex_unlock(&s->lock);
    return most;
}

/* One after the other: who is still on the list may leave it while another goes. Those who
 * come to wait from now on have asked for themselves. */
void cv_several_learn(cv_several *s, cv_several_state state)
{
    cv_mutex_lock(&s->lock);
    const uint64_t turn = ++s->turn;
    s->state = state;
    while (s->first && s->first->turn < turn) {
        cv_several_waiter *waiter = s->first;
        s->first = waiter->next;
        cv_mutex_unlock(&s->lock);
        waiter->go(waiter);
        cv_mutex_lock(&s->lock);
    }
    cv_mutex_unlock(&s->lock);
}

bool cv_several_leave(cv_several *s, cv_several_waiter *waiter)
{
    cv_mutex_lock(&s->lock);
    cv_several_waiter **at = &s->first, *before = NULL;
    while (*at && *at != waiter) {
        before = *at;
        at = &before->next;
    }
    bool waits = *at != NULL;
    if (waits) *at = waiter->next;
    if (waits && s->last == waiter) s->last = before;
    cv_mutex_unlock(&s->lock);
    return waits;
}
