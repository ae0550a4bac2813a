from lwskit.embedded.controllers import statefulset_revisions as history

from .objects import pod, revision, stateful_set


def test_name_and_labels():
    made = history.new_revision(stateful_set(), 1, 0)
    digest = made["metadata"]["labels"]["controller.kubernetes.io/hash"]
    assert made["metadata"]["name"] == f"web-{digest}"
    assert made["metadata"]["labels"]["app"] == "web"
    assert made["data"]["spec"]["template"]["$patch"] == "replace"
    assert history.template_of(made) == stateful_set()["spec"]["template"]


def test_the_name_is_the_one_that_other_clusters_give():
    # Recorded from a kube-controller-manager 1.37.
    spec = {
        "containers": [
            {
                "name": "main",
                "image": "one",
                "command": ["sh", "-c", "a && b > c"],
                "resources": {"requests": {"cpu": "500m"}},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 5,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    recorded = stateful_set(template={"metadata": {"labels": {"app": "web"}}, "spec": spec})
    assert history.new_revision(recorded, 1, 0)["metadata"]["name"] == "web-644c7f98cf"


def test_the_hash_depends_on_collisions_and_spells_no_words():
    assert history.hash_of({"a": 1}, 0) != history.hash_of({"a": 1}, 1)
    assert set(history.hash_of({"a": 1}, 0)) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_an_equal_newest_revision_is_used_as_it_is():
    revisions = [revision("one", "b", 1), revision("two", "a", 2)]
    choice = history.choose(stateful_set(), revisions)
    assert choice == history.Choice(revisions[1])


def test_a_roll_back_renumbers_the_old_revision():
    revisions = [revision("one", "a", 1), revision("two", "b", 2)]
    choice = history.choose(stateful_set(), revisions)
    assert (choice.update["metadata"]["name"], choice.create, choice.bump) == ("one", False, 3)


def test_a_new_template_makes_a_new_revision():
    choice = history.choose(stateful_set(), [revision("one", "b", 4)])
    assert choice.create
    assert choice.update["revision"] == 5


def test_current_is_the_one_in_the_status_or_the_update():
    one, two = revision("one", "a", 1), revision("two", "b", 2)
    assert history.current_of(stateful_set(status={"currentRevision": "one"}), [one, two], two) is one
    assert history.current_of(stateful_set(status={"currentRevision": "gone"}), [one], two) is two


def test_history_is_cut_from_the_old_end_but_not_below_what_lives():
    revisions = [revision(f"r{i}", str(i), i) for i in range(6)]
    limited = stateful_set(revisionHistoryLimit=1)
    gone = history.outdated(limited, revisions, [pod(0, "r0")], {"r5"})
    assert [r["metadata"]["name"] for r in gone] == ["r1", "r2", "r3"]
    assert history.outdated(stateful_set(), revisions, [], {"r5"}) == []


def test_order():
    made = [revision("b", "x", 2), revision("c", "x", 1), revision("a", "x", 2)]
    assert [r["metadata"]["name"] for r in history.sort(made)] == ["c", "a", "b"]
