//! French, Spanish, Italian, Portuguese and Romanian.

use super::Words;

pub(super) const FRENCH: Words = Words {
    always: "MM Mme Mmes Mlle Mlles Mgr Pr Vve cf p.ex c.-à-d c.à.d c.a.d càd s.a.r s.e",
    before_name: "mme mmes mlle mlles mgr vve m st ste sts stes gén lt cdt av bd boul Me",
    before_lower: "
        etc chap coll dép éd env fasc hab ibid inéd janv févr avr juil max min obs paragr ph préf s.d
        s.l s.v.p sqq suiv suppl tél av.j.-c apr.j.-c av.j apr.j j.-c
    ",
    before_number: "art al fig n no nos num op p pp pag réf t vol sept oct nov déc",
    units: "hab km kg min",
    starters: "
        le la les l un une des il elle ils elles on nous vous je j tu ce c cet cette ces mon ma
        mes son sa ses notre nos leur leurs mais et ou donc or ni car puis ensuite alors ainsi
        aujourd hier demain maintenant ici là qui que quoi quand où comment pourquoi quel quelle si
        comme après avant dans sur sous avec pour par en à au aux ne pas non oui tout tous
    ",
    labels: "vitamine partie groupe classe section hépatite annexe",
    months: "",
};

pub(super) const SPANISH: Words = Words {
    always: "
        Sra Srta Sres Sras Dra Dres Dña Excmo Excma Ilmo Ilma Rvdo Rvda p.ej p.e ee
    ",
    before_name: "
        sr sra srta sres sras dra dres d dª dña dn profa arq abog mtro mtra hno hna gral cnel Lic Ing
        Sto Sta avda av ud uds vd vds ee.uu rr.hh jj.oo ff.aa cc.oo s.a s.l s.m
    ",
    before_lower: "
        etc pág págs núm núms n.º arts caps figs teléf tfno vols eds aprox apdo c.p máx mín ene febr
        sept dic a.c d.c a.j.c d.j.c c/u izq dcha pza bco depto dpto admón trad
    ",
    before_number: "art cap fig p pp tel vol ed abr jun jul ago oct nov n c",
    units: "km kg min",
    starters: "
        el la los las un una unos unas él ella ellos ellas yo tú usted ustedes nosotros este esta esto
        estos estas ese esa eso esos esas aquel aquella mi mis su sus nuestro nuestra pero y e o u
        ni que quien cuando donde como cuanto qué quién cuándo dónde cómo por para con sin en
        desde hasta entre sobre si no sí hoy ayer mañana ahora luego después entonces también
        además aquí allí ya muy todo todos
    ",
    labels: "vitamina grupo tipo clase parte sección opción hepatitis",
    months: "",
};

pub(super) const ITALIAN: Words = Words {
    always: "
        Sig Sigg Dott sig.ra sig.na dott.ssa dr.ssa prof.ssa gent.mo gent.ma ill.mo p.es ad.es
    ",
    before_name: "
        sig sigg dott cfr p.za v.le c.so f.lli s.p.a s.r.l s.n.c s.a.s Avv Arch Geom Rag On Egr Gent
        Spett Mons Ss
    ",
    before_lower: "
        ecc pagg num artt capp vol voll ca max genn febbr apr magg giu lugl sett ott dic a.c d.c c.m
        seg segg sgg op.cit loc.cit sc rif n.d.r
    ",
    before_number: "art cap cell ed fax fig figg gen ago lug n nn nov p pag pp tab tel all",
    units: "km kg min",
    starters: "
        il lo la i gli le un uno una egli ella lui lei noi voi loro io tu questo questa questi queste
        quello quella quelli quelle mio mia suo sua nostro nostra ma e o però quindi poi dopo prima
        che chi quando dove come perché cosa quale se non sì no in con su per tra fra allo
        alla nel nella sul sulla oggi ieri domani ora adesso qui qua lì là anche
        tutto tutti è
    ",
    labels: "vitamina gruppo tipo classe parte sezione epatite",
    months: "",
};

pub(super) const PORTUGUESE: Words = Words {
    always: "Sra Srs Sras Srta Dra Dras Exmo Exma p.ex v.g prof.ª de.ex",
    before_name: "
        sra srs sras srta dra dras profa engª enga exmo exma ilmo ilma trav pça ltda s.a Eng Pe Cel
        av dl Dl Dna
    ",
    before_lower: "
        etc pág págs núm arts caps figs vols eds aprox apto máx mín fev abr ago set a.c d.c séc sécs
        obs ref trad Cia ş.a nr ex
    ",
    before_number: "art cap ed fig n nº p pp str tel vol jan mar mai jun jul out nov dez",
    units: "km kg min",
    starters: "
        o a os as um uma uns umas ele ela eles elas eu tu você vocês nós este esta isto estes estas
        esse essa isso esses essas aquele aquela aquilo meu minha seu sua nosso nossa mas e ou porém
        então depois antes que quem quando onde como porque por para com sem em no na nos nas
        desde até entre sobre se não sim hoje ontem amanhã agora aqui ali lá também já
        muito tudo todos é
    ",
    labels: "vitamina grupo tipo classe parte seção hepatite",
    months: "",
};
