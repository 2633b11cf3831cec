from mnemic.store.contract import Store as Store
from mnemic.store.opening import MAX_STALE as MAX_STALE
from mnemic.store.opening import migrate as migrate
from mnemic.store.opening import open_store as open_store
from mnemic.store.values import LogPosition as LogPosition
